#include "passes/training/ShareParameters.h"

#include "dialects/ds/Provenance.h"
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
};

class ParameterGatherer {
public:
  ParameterGatherer(func::FuncOp entry, ArrayRef<Unit> units, StringRef prefix)
      : entry(entry), units(units), prefix(prefix), body(entry.getBody().front()) {}
  LogicalResult run();

private:
  void findClusters();
  void addShards();
  void gather();

  func::FuncOp entry;
  ArrayRef<Unit> units;
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

void ParameterGatherer::addShards() {
  Signature signature(entry);
  for (const Unit &unit : units) {
    shards.push_back(signature.state(unit.stateName(), unit.element, {unit.shard()}));
    analysis.set(shards.back(), {unit.element, {unit.shard()}, std::nullopt});
  }
}

void ParameterGatherer::gather() {
  OpBuilder builder(entry.getContext());
  DsBuilder b(builder, analysis);
  for (size_t i = 0; i < clusters.size(); ++i) {
    Cluster &cluster = clusters[i];
    b.setLocation(withPart(entry.getLoc(), WorkRole::Forward, "parameters"));
    SmallVector<TensorFacts> facts;
    for (unsigned number : cluster.unit->parameters) {
      facts.push_back(analysis.facts(parameters[number].value));
      facts.back().contents.reset();
    }
    b.getBuilder().setInsertionPoint(i == 0 ? cluster.first : clusters[i - 1].first);
    Pending pending =
        Communication(b).allGather(*cluster.unit, shards[cluster.unit - units.data()], facts, cluster.site);
    b.getBuilder().setInsertionPoint(cluster.first);
    Values tensors = pending.finish(b);
    llvm::DenseMap<Value, Value> replaced;
    for (auto [number, tensor] : llvm::zip_equal(cluster.unit->parameters, tensors))
      replaced[parameters[number].value] = tensor;
    for (OpOperand *use : cluster.uses)
      use->set(replaced.lookup(use->get()));
  }
}

LogicalResult ParameterGatherer::run() {
  auto found = SizeAnalysis::run(entry);
  if (failed(found))
    return failure();
  analysis = std::move(*found);
  parameters = parametersOf(entry);
  findClusters();
  addShards();
  gather();
  llvm::BitVector gone(entry.getNumArguments());
  for (const Parameter &parameter : parameters)
    gone.set(parameter.value.getArgNumber());
  SmallVector<Attribute> results;
  return entry.eraseArguments(gone);
}

} // namespace

LogicalResult gatherParameters(func::FuncOp entry, ArrayRef<Unit> units, StringRef prefix) {
  return ParameterGatherer(entry, units, prefix).run();
}

LogicalResult scatterGradients(DsBuilder &b, Signature &signature, ArrayRef<Unit> units, ArrayRef<Value> gradients,
                               Value isFirst) {
  OpBuilder &builder = b.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.getInsertionBlock();
  Operation *end = body->getTerminator();
  // Where all gradients of a unit are there; null: from the beginning on.
  auto completeAt = [&](const Unit &unit) {
    Operation *last = nullptr;
    for (unsigned number : unit.parameters)
      if (Operation *op = gradients[number].getDefiningOp(); op && (!last || last->isBeforeInBlock(op)))
        last = op;
    return last;
  };
  SmallVector<std::pair<const Unit *, Operation *>> order;
  for (const Unit &unit : units)
    order.emplace_back(&unit, completeAt(unit));
  llvm::sort(order, [](const auto &x, const auto &y) {
    if (x.second == y.second)
      return x.first < y.first;
    return !x.second || (y.second && x.second->isBeforeInBlock(y.second));
  });
  std::optional<Pending> open;
  const Unit *opened = nullptr;
  auto finish = [&] {
    if (!open)
      return true;
    TensorFacts facts{opened->element, {opened->shard()}, std::nullopt};
    Value sum = open->finish(b).front();
    std::string name = opened->stateName("gradient");
    Value before = signature.state(name, facts.elementType, facts.sizes);
    b.getAnalysis().set(before, facts);
    Value next = isFirst ? b.select(isFirst, sum, b.add(before, sum)) : sum;
    signature.newState(next, name);
    return static_cast<bool>(next);
  };
  builder.setInsertionPointToStart(body);
  Operation *previous = nullptr;
  for (auto [unit, complete] : order) {
    if (complete != previous) // units of one branch are complete together: one goes after the other
      builder.setInsertionPointAfter(complete);
    previous = complete;
    if (!finish())
      return failure();
    SmallVector<Value> tensors;
    for (unsigned number : unit->parameters)
      tensors.push_back(gradients[number]);
    open = Communication(b).reduceScatter(*unit, tensors, "gradients/" + unit->name);
    opened = unit;
  }
  builder.setInsertionPoint(end);
  return success(finish());
}

void markStates(ModuleOp module, ArrayRef<Unit> units, ArrayRef<Parameter> parameters,
                ArrayRef<StringRef> optimizerStates, bool areParametersShared) {
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
    places[unit.stateName()] = {unit.name, areParametersShared ? "shard" : "view", ""};
    places[unit.stateName("gradient")] = {unit.name, "shard", "/gradient"};
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
