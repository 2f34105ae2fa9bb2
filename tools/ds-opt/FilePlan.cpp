#include "tools/ds-opt/FilePlan.h"

#include "codegen/CollectivePlan.h"
#include "codegen/Passes.h"
#include "dialects/ds/UnitAttrs.h"
#include "runtime/core/BufferMemory.h"
#include "runtime/engine/RunConfig.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>

using namespace mlir;

namespace deepstride {
namespace {

/// Names of the states that launches do not take element by element, or messages carry, among those that are asked
/// for: as the runtime finds them in a manifest.
class WholeStates {
public:
  WholeStates(ModuleOp program, const std::set<std::string> &asked) : program(program), asked(asked) {}

  FailureOr<std::set<std::string>> find();

private:
  LogicalResult lowerKernels();
  /// Of the entry's buffers; empty for what is no state that is asked for.
  std::vector<std::string> namesOf(func::FuncOp entry) const;
  template <typename Action> void forEachLaunch(Action action);
  LogicalResult addCollectives(func::FuncOp entry);

  ModuleOp program;
  const std::set<std::string> &asked;
  llvm::StringMap<std::vector<bool>> isElementwise; // operands and results, by kernel
  std::set<std::string> whole;
};

std::vector<std::string> WholeStates::namesOf(func::FuncOp entry) const {
  std::vector<std::string> states, names;
  for (unsigned i = 0; i < entry.getNumArguments(); ++i)
    if (auto name = entry.getArgAttrOfType<StringAttr>(i, ds::stateAttr))
      states.push_back(name.str());
  for (auto fields : entry->getAttrOfType<ArrayAttr>("ds.buffers").getAsRange<DictionaryAttr>()) {
    bool isState = fields.getAs<StringAttr>("role").getValue() == "state";
    std::string name = isState ? states.at(static_cast<size_t>(fields.getAs<IntegerAttr>("index").getInt())) : "";
    names.push_back(asked.count(name) ? name : "");
  }
  return names;
}

/// Calls action(launch, names of its buffers) for launches that work on such a state.
template <typename Action> void WholeStates::forEachLaunch(Action action) {
  for (auto entry : program.getOps<func::FuncOp>()) {
    if (!entry->hasAttr(ds::entryAttr))
      continue;
    std::vector<std::string> names = namesOf(entry);
    entry.walk([&](ds::LaunchOp launch) {
      auto buffers = launch->getAttrOfType<DenseI64ArrayAttr>("buffers").asArrayRef();
      if (llvm::any_of(buffers, [&](int64_t buffer) { return !names[static_cast<size_t>(buffer)].empty(); }))
        action(launch, names);
    });
  }
}

LogicalResult WholeStates::lowerKernels() {
  OwningOpRef<ModuleOp> kernels(ModuleOp::create(program.getLoc()));
  llvm::StringMap<bool> known;
  forEachLaunch([&](ds::LaunchOp launch, const std::vector<std::string> &) {
    if (known.try_emplace(launch.getKernel(), true).second)
      OpBuilder::atBlockEnd(kernels->getBody()).clone(*program.lookupSymbol<ds::KernelOp>(launch.getKernel()));
  });
  PassManager pm(program.getContext());
  pm.addPass(createConvertDsToLinalg()); // vectors of whatever length find the same
  if (failed(pm.run(*kernels)))
    return failure();
  for (auto function : kernels->getOps<func::FuncOp>())
    if (auto found = function->getAttrOfType<DenseBoolArrayAttr>("ds.elementwise"))
      isElementwise[function.getSymName()].assign(found.asArrayRef().begin(), found.asArrayRef().end());
  return success();
}

LogicalResult WholeStates::addCollectives(func::FuncOp entry) {
  auto analysis = SizeAnalysis::run(entry);
  if (failed(analysis))
    return failure();
  std::vector<std::string> names = namesOf(entry);
  entry.walk([&](dist::StartInterface start) {
    for (const EntryPlan::CollectivePart &part : planCollective(start, *analysis).parts) {
      SmallVector<int64_t> buffers = {part.own, part.workerError, part.serverError};
      for (const EntryPlan::Piece &piece : part.whole)
        buffers.append({piece.buffer, piece.source});
      for (int64_t buffer : buffers)
        if (buffer >= 0)
          whole.insert(names[static_cast<size_t>(buffer)]);
    }
  });
  return success();
}

FailureOr<std::set<std::string>> WholeStates::find() {
  if (asked.empty())
    return whole;
  if (failed(lowerKernels()))
    return failure();
  forEachLaunch([&](ds::LaunchOp launch, const std::vector<std::string> &names) {
    SmallVector<uint32_t> buffers(launch->getAttrOfType<DenseI64ArrayAttr>("buffers").asArrayRef());
    SmallVector<uint32_t> apart = elementwiseBuffers(buffers, isElementwise.lookup(launch.getKernel()));
    for (uint32_t buffer : buffers)
      if (!llvm::is_contained(apart, buffer))
        whole.insert(names[buffer]);
  });
  for (auto entry : program.getOps<func::FuncOp>())
    if (entry->hasAttr(ds::entryAttr) && failed(addCollectives(entry)))
      return failure();
  return whole;
}

} // namespace

FailureOr<FilePlan> FilePlan::make(ModuleOp program, const ::ds::config::TrainingConfig &config,
                                   const std::vector<PlannedState> &states) {
  FilePlan plan(::ds::placesOf(config));
  std::set<std::string> asked;
  for (const PlannedState &state : states)
    if (const ::ds::PlaceSettings *settings = plan.settings.of(state.kind);
        settings && settings->place == ::ds::StatePlace::File && settings->isLonger(state.bytes / state.width))
      asked.insert(state.name);
  auto whole = WholeStates(program, asked).find();
  if (failed(whole))
    return failure();
  for (const PlannedState &state : states)
    plan.add(state, *whole);
  return plan;
}

void FilePlan::add(const PlannedState &state, const std::set<std::string> &whole) {
  const ::ds::PlaceSettings *place = settings.of(state.kind);
  auto bytes = static_cast<uint64_t>(state.bytes);
  int64_t elements = state.bytes / state.width;
  bool isOfFile = place && place->place == ::ds::StatePlace::File && !state.isSpace && bytes != 0;
  if (isOfFile && place->staysInHost(hostElements, elements)) {
    hostElements += elements;
    isOfFile = false;
  }
  if (!isOfFile) {
    (!place || place->place == ::ds::StatePlace::Device ? device : host) += bytes;
    return;
  }
  file += bytes;
  granted += ::ds::grantedBytes(bytes);
  bool isCut = place->isLonger(elements) && whole.count(state.name) == 0;
  (place == &settings.parameters ? parameters : optimizer)
      .add(::ds::FilePieces(bytes, place->pieceBytes(bytes, static_cast<size_t>(state.width), isCut)));
}

llvm::json::Object FilePlan::places() const {
  return llvm::json::Object{{"device", static_cast<int64_t>(device)},
                            {"host", static_cast<int64_t>(host)},
                            {"file", static_cast<int64_t>(file)}};
}

llvm::json::Object FilePlan::files() const {
  auto first = parameters.resident(), second = optimizer.resident();
  return llvm::json::Object{{"parameters", static_cast<int64_t>(parameters.bytes())},
                            {"optimizer", static_cast<int64_t>(optimizer.bytes())},
                            {"resident", static_cast<int64_t>(first.pieces + second.pieces)},
                            {"resident_bytes", static_cast<int64_t>(first.bytes + second.bytes)}};
}

int64_t FilePlan::saved() const {
  return static_cast<int64_t>(granted) - static_cast<int64_t>(parameters.resident().bytes + optimizer.resident().bytes);
}

} // namespace deepstride
