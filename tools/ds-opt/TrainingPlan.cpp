// Sizes are the expressions that the runtime evaluates, with the mesh's symbols bound here.
#include "tools/ds-opt/TrainingPlan.h"

#include "codegen/CollectivePlan.h"
#include "codegen/TemporaryFolder.h"
#include "dialects/ds/UnitAttrs.h"
#include "tools/ds-opt/FilePlan.h"
#include "tools/ds-opt/MemoryBudget.h"
#include "llvm/Support/JSON.h"

#include <set>

using namespace mlir;

namespace deepstride {
namespace {

class TrainingPlan {
public:
  TrainingPlan(ModuleOp program, const DriverOptions &options)
      : program(program), options(options), ranks(options.training.ranks.value_or(1)) {
    bindings["mesh.data"] = SizeExpr(ranks);
    bindings["mesh.data.index"] = SizeExpr(0);
  }

  FailureOr<llvm::json::Object> make();

private:
  int64_t valueOf(const SizeExpr &size) const {
    auto value = SizeExpr::parse(size.str(), &bindings);
    return value ? value->constant().value_or(0) : 0;
  }
  void addStates(func::FuncOp entry);
  LogicalResult addSites(func::FuncOp entry);
  llvm::json::Array units() const;

  ModuleOp program;
  const DriverOptions &options;
  int64_t ranks;
  llvm::StringMap<SizeExpr> bindings;
  std::set<std::string> known;   // states, and spaces of units
  std::set<std::string> inUnits; // tensors, which other entries name without knowing
  std::map<std::string, int64_t> bytes{
      {"parameters", 0}, {"gradients", 0}, {"optimizer", 0}, {"residuals", 0}, {"others", 0}};
  std::vector<PlannedState> states;      // in the order in which the runtime meets them
  std::map<std::string, int64_t> shards; // elements, by unit
  int64_t gathered = 0;
  llvm::json::Array sites;
};

int64_t widthOf(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

ArrayAttr unitsOf(ModuleOp program) {
  for (auto entry : program.getOps<func::FuncOp>())
    if (auto units = entry->getAttrOfType<ArrayAttr>(ds::unitsAttr))
      return units;
  return {};
}

llvm::json::Array TrainingPlan::units() const {
  llvm::json::Array list;
  if (ArrayAttr units = unitsOf(program))
    for (auto unit : units.getAsRange<DictionaryAttr>()) {
      std::string name = unit.getAs<StringAttr>("name").str();
      list.push_back(llvm::json::Object{
          {"name", name}, {"elements", unit.getAs<IntegerAttr>("elements").getInt()}, {"shard", shards.at(name)}});
    }
  return list;
}

/// Each state once, a unit's space as a whole.
void TrainingPlan::addStates(func::FuncOp entry) {
  for (BlockArgument argument : entry.getArguments()) {
    auto text = [&](StringRef key) {
      auto value = entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(), key);
      return value ? value.str() : std::string();
    };
    std::string name = text(ds::stateAttr), part = text(ds::partAttr), suffix = text(ds::suffixAttr);
    if (name.empty() || (part.empty() && inUnits.count(name)))
      continue;
    int64_t width = widthOf(getElementTypeOrSelf(argument.getType())), own = 0;
    if (part.empty()) {
      auto sizes = sizesFromAttribute(entry.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), ds::dimsAttr));
      own = valueOf(product(*sizes)) * width;
      size_t slash = name.rfind('/');
      suffix = slash == std::string::npos ? "" : name.substr(slash);
    } else {
      int64_t shard = shards.at(text(ds::unitAttr));
      bool isSpace = part != "shard";
      name = "zero/" + text(ds::unitAttr) + suffix + (isSpace ? "" : "/shard");
      own = (isSpace ? ranks * shard : shard) * width; // of a worker, too
    }
    if (!known.insert(name).second)
      continue;
    bool isStatistic = entry.getArgAttr(argument.getArgNumber(), ds::statisticAttr) || suffix == "/moved";
    bool isParameter = part.empty() ? bool(entry.getArgAttr(argument.getArgNumber(), ds::initialAttr)) : suffix.empty();
    bool isResidual = suffix == "/worker_error" || suffix == "/server_error";
    using Kind = ::ds::StateClass;
    auto [key, kind] = isStatistic             ? std::pair("others", Kind::Other)
                       : isParameter           ? std::pair("parameters", Kind::Parameter)
                       : suffix == "/gradient" ? std::pair("gradients", Kind::Gradient)
                       : isResidual            ? std::pair("residuals", Kind::Residual)
                                               : std::pair("optimizer", Kind::Optimizer);
    bytes[key] += own;
    states.push_back({text(ds::stateAttr), kind, own, width, !part.empty() && part != "shard" && part != "worker"});
  }
}

LogicalResult TrainingPlan::addSites(func::FuncOp entry) {
  auto analysis = SizeAnalysis::run(entry);
  if (failed(analysis))
    return failure();
  StringRef name = entry.getSymName();
  bool isOnce = name == "update" || name == "local_norm" || name == "update_compressed";
  int64_t calls = name == "micro" ? options.training.resolved->accumulation : isOnce ? 1 : 0;
  SmallVector<std::pair<dist::StartInterface, int64_t>>
      open; // gathers between start and the last use of what they give
  entry.walk([&](dist::StartInterface start) {
    EntryPlan::Collective collective = planCollective(start, *analysis);
    int64_t elements = 0;
    for (const EntryPlan::CollectivePart &part : collective.parts)
      elements += valueOf(part.end) - valueOf(part.begin);
    if (isa<dist::AllGatherStartOp>(start) && name != "update")
      open.emplace_back(start, elements * widthOf(getElementTypeOrSelf(start.sourceValues().front())));
    // Gradients are sent in a step's last micro-batch, parameters are gathered unless their layer is dropped.
    bool isOfLast = start.conditionValue() && !isa<dist::AllGatherStartOp>(start);
    int64_t own = isOfLast ? std::min<int64_t>(calls, 1) : calls;
    sites.push_back(llvm::json::Object{{"site", collective.site},
                                       {"entry", name},
                                       {"op", collective.op},
                                       {"axis", collective.axis},
                                       {"codec", collective.codec.empty() ? "none" : collective.codec},
                                       {"type", collective.type},
                                       {"elements", elements},
                                       {"calls", own},
                                       {"sent", own * valueOf(collective.sent)},
                                       {"received", own * valueOf(collective.received)}});
  });
  // What is gathered at a time: results live in workspace from start to their last reader.
  auto buffers = entry->getAttrOfType<ArrayAttr>("ds.buffers");
  std::map<int64_t, int64_t> steps; // launch: bytes more or less
  for (auto [start, size] : open) {
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    auto list = start->getAttrOfType<DenseI64ArrayAttr>("buffers").asArrayRef();
    for (int64_t buffer : list.drop_front(start.sourceValues().size())) {
      auto fields = cast<DictionaryAttr>(buffers[static_cast<unsigned>(buffer)]);
      if (auto from = fields.getAs<IntegerAttr>("first")) {
        first = std::min(first, from.getInt());
        last = std::max(last, fields.getAs<IntegerAttr>("last").getInt());
      }
    }
    steps[first] += size;
    steps[last + 1] -= size;
  }
  int64_t now = 0;
  for (auto [at, change] : steps)
    gathered = std::max(gathered, now += change);
  return success();
}

FailureOr<llvm::json::Object> TrainingPlan::make() {
  int64_t block = 64;
  if (ArrayAttr units = unitsOf(program))
    for (auto unit : units.getAsRange<DictionaryAttr>()) {
      block = unit.getAs<IntegerAttr>("block").getInt();
      shards[unit.getAs<StringAttr>("name").str()] =
          llvm::divideCeil(unit.getAs<IntegerAttr>("elements").getInt(), ranks * block) * block;
    }
  for (auto entry : program.getOps<func::FuncOp>())
    for (unsigned i = 0; i < entry.getNumArguments(); ++i)
      if (entry.getArgAttr(i, ds::partAttr))
        inUnits.insert(entry.getArgAttrOfType<StringAttr>(i, ds::stateAttr).str());
  for (StringRef name : {"update", "update_compressed"}) // as a run of which states are in files
    if (auto entry = program.lookupSymbol<func::FuncOp>(name))
      addStates(entry);
  for (auto entry : program.getOps<func::FuncOp>())
    if (entry->hasAttr(ds::entryAttr)) {
      addStates(entry);
      if (failed(addSites(entry)))
        return failure();
    }
  auto files = FilePlan::make(program, *options.training.resolved, states);
  if (failed(files))
    return failure();
  llvm::json::Object held;
  for (const auto &[name, count] : bytes)
    held[name] = count;
  held["gathered"] = gathered;
  std::map<std::string, int64_t> dims = batchDims(program, options.training.resolved->microBatch);
  dims["mesh.data"] = ranks;
  dims["mesh.data.index"] = 0;
  std::string missing;
  if (auto peak = plannedBytes(program, dims, options.training.resolved->accumulation, missing))
    held["peak"] = static_cast<int64_t>(*peak) - files->saved();
  else
    held["peak_depends_on"] = missing;
  return llvm::json::Object{{"mesh", llvm::json::Object{{"data", ranks}}},
                            {"stage", options.training.resolved->zero.stage},
                            {"block", block},
                            {"units", units()},
                            {"bytes", std::move(held)},
                            {"places", files->places()},
                            {"files", files->files()},
                            {"sites", std::move(sites)}};
}

} // namespace

LogicalResult writeTrainingPlan(ModuleOp program, const DriverOptions &options) {
  auto plan = TrainingPlan(program, options).make();
  if (failed(plan))
    return failure();
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(*plan)));
  return success(writeText(text, options.training.planFile));
}

LogicalResult writeResult(ModuleOp program, const DriverOptions &options, bool withLocations) {
  return options.training.isPlanned ? writeTrainingPlan(program, options)
                                    : success(writeModule(program, options.output, withLocations));
}

} // namespace deepstride
