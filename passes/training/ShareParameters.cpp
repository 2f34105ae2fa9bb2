#include "passes/training/ShareParameters.h"

#include "dialects/ds/Provenance.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/training/Communication.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace deepstride {

namespace {

/// Readers of a unit's parameters on one way: what is gathered for them.
struct Cluster {
  const Unit *unit;
  std::string site;
  SmallVector<OpOperand *> uses;
  Operation *first = nullptr; // of the entry's block
  bool isBack = false;
  bool isThere = false; // a cluster before gathers for it, too
  int64_t others = 0;   // elements of other units that are there while it is read
};

class ParameterGatherer {
public:
  ParameterGatherer(func::FuncOp entry, ArrayRef<Unit> units, const SharingSettings &sharing, StringRef prefix)
      : entry(entry), units(units), sharing(sharing), prefix(prefix), body(entry.getBody().front()) {}
  LogicalResult run();

private:
  void findClusters();
  void keepReused();
  void addShards();
  size_t gatheredAhead(size_t number) const;
  Value gateOf(const Cluster &cluster);
  void gather(size_t number, DsBuilder &b);

  func::FuncOp entry;
  ArrayRef<Unit> units;
  const SharingSettings &sharing;
  StringRef prefix;
  Block &body;
  SizeAnalysis analysis;
  SmallVector<Parameter> parameters;
  SmallVector<Value> shards;     // by unit
  SmallVector<Cluster> clusters; // by their first readers
  llvm::StringMap<int> siteCounts;
};

/// The first op of the way back, or the end.
Operation *beginOfBackward(Block &body) {
  for (Operation &op : body) {
    bool isBack = false;
    op.walk([&](Operation *inner) {
      for (const WorkPlace &place : workPlacesOf(inner))
        isBack |= place.role == WorkRole::Backward;
    });
    if (isBack)
      return &op;
  }
  return body.getTerminator();
}

/// Uses of a unit lie in one cluster unless two other units are read in between: it would stay beside both of them.
void ParameterGatherer::findClusters() {
  struct Use {
    Operation *at;
    OpOperand *operand;
    const Unit *unit;
  };
  SmallVector<Use> all;
  for (const Unit &unit : units)
    for (unsigned number : unit.parameters)
      for (OpOperand &use : parameters[number].value.getUses())
        if (!unit.staysWhole)
          all.push_back({body.findAncestorOpInBlock(*use.getOwner()), &use, &unit});
  llvm::sort(all, [](const Use &a, const Use &b) {
    if (a.at != b.at)
      return a.at->isBeforeInBlock(b.at);
    return std::pair(a.unit, a.operand->getOperandNumber()) < std::pair(b.unit, b.operand->getOperandNumber());
  });
  Operation *backward = beginOfBackward(body);
  llvm::DenseMap<const Unit *, size_t> open;                              // the last cluster of a unit
  llvm::DenseMap<const Unit *, llvm::SmallPtrSet<const Unit *, 4>> since; // others that were read after it
  for (const Use &use : all) {
    bool isBack = !use.at->isBeforeInBlock(backward);
    auto known = open.find(use.unit);
    if (known == open.end() || clusters[known->second].isBack != isBack || since[use.unit].size() > 1) {
      known = open.insert_or_assign(use.unit, clusters.size()).first;
      Cluster &fresh = clusters.emplace_back();
      fresh.unit = use.unit;
      fresh.isBack = isBack;
      fresh.first = use.at;
      fresh.site = (prefix + (isBack ? "/backward/" : "/") + use.unit->name).str();
      if (int count = siteCounts[fresh.site]++; count > 0)
        fresh.site += " (" + std::to_string(count + 1) + ")";
    }
    clusters[known->second].uses.push_back(use.operand);
    since[use.unit].clear();
    for (auto &[other, read] : since)
      if (other != use.unit)
        read.insert(use.unit);
  }
}

/// A unit that is read again soon stays, the soonest first, where what is there at a time allows: all others that are
/// read in between lie beside it.
void ParameterGatherer::keepReused() {
  struct Reuse {
    int64_t distance; // elements that are read in between
    size_t from, to;
  };
  SmallVector<Reuse> all;
  llvm::DenseMap<const Unit *, size_t> last;
  for (auto [number, cluster] : llvm::enumerate(clusters)) {
    if (auto known = last.find(cluster.unit); known != last.end()) {
      Reuse reuse{0, known->second, number};
      for (size_t between = reuse.from + 1; between < number; ++between)
        reuse.distance += clusters[between].unit->elements;
      if (reuse.distance < sharing.maxReuse)
        all.push_back(reuse);
    }
    last[cluster.unit] = number;
  }
  llvm::sort(all, [](const Reuse &a, const Reuse &b) {
    return std::pair(a.distance, a.from) < std::pair(b.distance, b.from);
  });
  SmallVector<size_t> gatherer;
  for (size_t number = 0; number < clusters.size(); ++number)
    gatherer.push_back(number);
  for (const Reuse &reuse : all) {
    auto between = MutableArrayRef(clusters).slice(reuse.from + 1, reuse.to - reuse.from - 1);
    int64_t own = clusters[reuse.from].unit->elements;
    if (llvm::any_of(between,
                     [&](const Cluster &other) { return other.unit->elements + other.others + own > sharing.maxLive; }))
      continue;
    for (Cluster &other : between)
      other.others += own;
    clusters[reuse.to].isThere = true;
    gatherer[reuse.to] = reuse.from;
  }
  for (size_t number = 0; number < clusters.size(); ++number) {
    gatherer[number] = gatherer[gatherer[number]]; // which comes before
    if (clusters[number].isThere)
      clusters[gatherer[number]].uses.append(std::exchange(clusters[number].uses, {}));
  }
}

void ParameterGatherer::addShards() {
  Signature signature(entry);
  for (const Unit &unit : units) {
    shards.emplace_back();
    if (unit.staysWhole)
      continue;
    shards.back() = signature.state(unit.stateName(), unit.readElement(), {unit.shard()});
    analysis.set(shards.back(), {unit.readElement(), {unit.shard()}, std::nullopt});
  }
}

/// How many parameters of a cluster's unit are on the way while the cluster before it is read.
size_t ParameterGatherer::gatheredAhead(size_t number) const {
  if (number == 0)
    return 0;
  const Unit &unit = *clusters[number].unit;
  const Cluster &before = clusters[number - 1];
  int64_t most = std::min(sharing.prefetch, sharing.maxLive - before.unit->elements - before.others);
  size_t count = 0;
  while (count < unit.offsets.size() &&
         (count + 1 < unit.offsets.size() ? unit.offsets[count + 1] : unit.elements) <= most)
    ++count;
  return count;
}

/// The input without which nobody reads the cluster, as a layer is dropped on all ranks; null: it is always read.
Value ParameterGatherer::gateOf(const Cluster &cluster) {
  Value gate;
  for (OpOperand *use : cluster.uses) {
    auto branch = dyn_cast<scf::IfOp>(body.findAncestorOpInBlock(*use->getOwner()));
    auto read = branch ? branch.getCondition().getDefiningOp<tensor::ExtractOp>() : tensor::ExtractOp();
    auto input = read ? dyn_cast<BlockArgument>(read.getTensor()) : BlockArgument();
    bool isOnAll = input && input.getOwner() == &body && entry.getArgAttr(input.getArgNumber(), dist::uniformAttr);
    bool isTaken = branch && branch.getThenRegion().isAncestor(use->getOwner()->getParentRegion());
    if (!isOnAll || !isTaken || (gate && gate != read.getTensor()))
      return {};
    gate = read.getTensor();
  }
  return gate;
}

void ParameterGatherer::gather(size_t number, DsBuilder &b) {
  Cluster &cluster = clusters[number];
  const Unit &unit = *cluster.unit;
  size_t ahead = gatheredAhead(number), all = unit.parameters.size();
  Value gate = gateOf(cluster);
  llvm::DenseMap<Value, Value> replaced;
  SmallVector<std::pair<Bucket, Pending>> pending;
  auto start = [&](size_t first, size_t last, Operation *at, const std::string &site) {
    Bucket bucket{&unit, first, last, unit.name};
    SmallVector<TensorFacts> facts;
    for (unsigned parameter : bucket.parameters()) {
      facts.push_back(analysis.facts(parameters[parameter].value));
      facts.back().contents.reset();
    }
    b.getBuilder().setInsertionPoint(at);
    pending.emplace_back(bucket, Communication(b).allGather(bucket, shards[&unit - units.data()], facts, site, gate));
  };
  if (ahead > 0)
    start(0, ahead, clusters[number - 1].first, cluster.site);
  if (ahead < all)
    start(ahead, all, cluster.first, cluster.site + (ahead > 0 ? ", rest" : ""));
  b.getBuilder().setInsertionPoint(cluster.first);
  for (const auto &[bucket, gathered] : pending) {
    SmallVector<Attribute> names;
    Values tensors = gathered.finish(b);
    for (auto [parameter, tensor] : llvm::zip_equal(bucket.parameters(), tensors)) {
      replaced[parameters[parameter].value] = tensor;
      names.push_back(parameters[parameter].name);
    }
    tensors.front().getDefiningOp()->setAttr(ds::gatheredAttr, b.getBuilder().getArrayAttr(names));
  }
  for (OpOperand *use : cluster.uses)
    use->set(replaced.lookup(use->get()));
}

LogicalResult ParameterGatherer::run() {
  auto found = SizeAnalysis::run(entry);
  if (failed(found))
    return failure();
  analysis = std::move(*found);
  parameters = parametersOf(entry);
  findClusters();
  keepReused();
  addShards();
  OpBuilder builder(entry.getContext());
  DsBuilder b(builder, analysis);
  b.setLocation(withPart(entry.getLoc(), WorkRole::Forward, "parameters"));
  for (size_t i = 0; i < clusters.size(); ++i)
    if (!clusters[i].isThere)
      gather(i, b);
  llvm::BitVector gone(entry.getNumArguments());
  for (const Unit &unit : units)
    for (unsigned number : unit.parameters)
      if (!unit.staysWhole)
        gone.set(parameters[number].value.getArgNumber());
  return entry.eraseArguments(gone);
}

} // namespace

LogicalResult gatherParameters(func::FuncOp entry, ArrayRef<Unit> units, const SharingSettings &sharing,
                               StringRef prefix) {
  return ParameterGatherer(entry, units, sharing, prefix).run();
}

void markStates(ModuleOp module, ArrayRef<Unit> units, ArrayRef<Parameter> parameters,
                ArrayRef<StringRef> optimizerStates, const SharingSettings &sharing) {
  struct Place {
    StringRef unit, part;
    std::string suffix;
  };
  llvm::StringMap<Place> places;
  for (const Unit &unit : units) {
    for (unsigned number : unit.parameters) {
      places[parameters[number].name.getValue()] = {unit.name, "tensor", ""};
      places[parameters[number].stateName("gradient")] = {unit.name, "tensor", "/gradient"};
    }
    places[unit.stateName()] = {unit.name, sharing.isShared(unit) ? "shard" : "view", ""};
    places[unit.stateName("gradient")] = {unit.name, sharing.areGradientsShared() ? "shard" : "view", "/gradient"};
    if (unit.rounded)
      places[unit.ownStateName()] = {unit.name, "shard", "/" + masterSuffix.str()};
    for (StringRef suffix : optimizerStates)
      places[unit.stateName(suffix)] = {unit.name, "shard", "/" + suffix.str()};
  }
  Builder builder(module.getContext());
  for (auto entry : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      auto state = entry.getArgAttrOfType<StringAttr>(i, ds::stateAttr);
      auto place = state ? places.find(state.getValue()) : places.end();
      if (place == places.end())
        continue;
      entry.setArgAttr(i, ds::unitAttr, builder.getStringAttr(place->second.unit));
      entry.setArgAttr(i, ds::partAttr, builder.getStringAttr(place->second.part));
      entry.setArgAttr(i, ds::suffixAttr, builder.getStringAttr(place->second.suffix));
    }
}

} // namespace deepstride
