// Compilations of copies of the program that only find out what to choose: how weights are rounded, by what a run for
// calibration observes, and which activations are computed again, by what a step then takes.
#include "tools/ds-opt/Compilation.h"

#include "dialects/ds/Recomputation.h"
#include "passes/Pipelines.h"
#include "passes/optimization/Calibration.h"
#include "passes/training/Passes.h"
#include "tools/ds-opt/Crash.h"
#include "tools/ds-opt/Machine.h"
#include "tools/ds-opt/MemoryBudget.h"
#include "tools/ds-opt/Message.h"

using namespace mlir;

namespace deepstride {

/// Writes a package that sums what the rounding of weights is judged by, from the given weight on: of which weights,
/// and which is the first that is left, or -1.
FailureOr<DictionaryAttr> Compilation::observe(const CpuTarget &host, int64_t &first) {
  OwningOpRef<ModuleOp> program = module->clone();
  auto isDone = [&](Phase phase, function_ref<void(OpPassManager &)> build) {
    return runPasses(phase, *program, build) == Outcome::Done;
  };
  OptimizationPipelineOptions optimization;
  optimization.machine = host.machine;
  optimization.observe = true;
  optimization.first = first;
  optimization.keep = options.quantize.keep;
  if (!isDone(Phase::Optimization, [&](OpPassManager &pm) { buildOptimizationPipeline(pm, optimization); }))
    return failure();
  auto observed = (*program)->getAttrOfType<DictionaryAttr>(observedAttr);
  auto left = (*program)->getAttrOfType<IntegerAttr>(unobservedAttr);
  first = left ? left.getInt() : -1;
  if (observed.empty())
    return observed;
  PackageWriter writer(calibration->package(), PackageOptions());
  if (!isDone(Phase::Memory, [](OpPassManager &pm) { buildMemoryPipeline(pm, MemoryPipelineOptions()); }) ||
      failed(writer.addVariant(*program, host, /*reference=*/false)) || failed(writer.finish(module->getLoc())))
    return failure();
  return observed;
}

Compilation::Outcome Compilation::calibrate() {
  enterStage("calibration");
  auto fail = [](const Twine &message) {
    printMessage("ds-opt: error: --calibrate: " + message);
    return Outcome::Diagnosed;
  };
  calibration = std::make_unique<Calibration>(options.calibrate);
  if (std::error_code code = calibration->error())
    return fail("cannot create a temporary folder: " + code.message());
  std::string error;
  auto host = resolveCpuTarget("host", error); // whatever the package is for
  if (!host)
    return fail(error);
  host->machine = machineOf(*host, /*isThisMachine=*/true, /*asksForRates=*/false, /*ceilings=*/"", error); // f32 alone
  ScopedDiagnosticHandler remarks(context.get(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark);
  });
  isCalibrating = true;
  bool hasWeights = false;
  for (int64_t first = 0; first >= 0;) {
    auto observed = observe(*host, first);
    if (failed(observed))
      return diagnosedOrBug("the program for calibration could not be compiled", "");
    if (observed->empty())
      break;
    if (std::string wrong = calibration->add(*observed); !wrong.empty())
      return fail(wrong);
    hasWeights = true;
  }
  isCalibrating = false;
  if (!hasWeights) // tables and filters are rounded to nearest
    return fail(options.calibrate + ": nothing asks for it, as no product has a weight to quantize" +
                (options.quantize.keep.empty() ? "" : ", or keep=" + options.quantize.keep + " names all"));
  if (calibration->weights() == 0)
    return fail(options.calibrate + ": no product meets a number but 0, expected inputs with rows");
  PassReport::Counts counts;
  PassReport::add(counts, "calls", calibration->calls());
  PassReport::add(counts, "weights observed", static_cast<int64_t>(calibration->weights()));
  report.add("calibration", counts);
  calibration->annotate(*module);
  return Outcome::Done;
}

/// Plans a copy of the program that computes so many activations again: what it takes on the target that takes most,
/// and how many there are.
std::optional<uint64_t> Compilation::bytesWith(int64_t values, const std::map<std::string, int64_t> &dims,
                                               int64_t &count) {
  uint64_t most = 0;
  for (const CpuTarget &target : targets) {
    OwningOpRef<ModuleOp> program = module->clone();
    RecomputeActivationsOptions recompute;
    recompute.values = values;
    recompute.dims = textOf(dims);
    if (runPasses(Phase::Training, *program,
                  [&](OpPassManager &pm) { pm.addPass(createRecomputeActivations(recompute)); }) != Outcome::Done)
      return std::nullopt;
    count = (*program)->getAttrOfType<IntegerAttr>(ds::activationsAttr).getInt();
    for (Phase phase : {Phase::Optimization, Phase::Memory})
      if (runPhase(phase, *program, target) != Outcome::Done)
        return std::nullopt;
    std::string missing;
    auto bytes = plannedBytes(*program, dims, options.training.resolved->accumulation, missing);
    if (!bytes) {
      emitError(module->getLoc()) << "--memory: what a step takes depends on the dimension '" << missing
                                  << "'; expected it to be pinned, as by --dim " << missing << "=128";
      return std::nullopt;
    }
    most = std::max(most, *bytes);
  }
  return most;
}

/// Finds which activations are computed again: as few as fit --memory, or those that leave least to be kept.
Compilation::Outcome Compilation::fitMemory() {
  const TrainingRequest &training = options.training;
  if (!training.memory && !(training.resolved && training.resolved->recomputes))
    return Outcome::Done;
  enterStage("recomputation");
  std::map<std::string, int64_t> dims = batchDims(*module, training.resolved->microBatch);
  int64_t count = 0;
  isCalibrating = true;
  std::optional<MemoryChoice> choice;
  {
    ScopedDiagnosticHandler remarks(context.get(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark);
    });
    if (bytesWith(0, dims, count))
      choice =
          chooseRecomputation(count, training.memory, [&](int64_t values) { return bytesWith(values, dims, count); });
  }
  isCalibrating = false;
  if (!choice)
    return diagnosedOrBug("the program could not be planned", "");
  if (training.memory && choice->bytes > *training.memory) {
    emitError(module->getLoc()) << "--memory: found " << *training.memory << " bytes, expected at least "
                                << choice->leastBytes << ", which a step takes that computes " << choice->values
                                << " of " << count << " activations again";
    return Outcome::Diagnosed;
  }
  PassReport::Counts counts;
  PassReport::add(counts, "bytes kept without", static_cast<int64_t>(choice->mostBytes));
  PassReport::add(counts, "bytes", static_cast<int64_t>(choice->bytes));
  report.add("recomputation", counts);
  if (choice->values == 0)
    return Outcome::Done;
  return runPasses(Phase::Training, *module,
                   [&](OpPassManager &pm) { pm.addPass(createRecomputeActivations({choice->values, textOf(dims)})); });
}

} // namespace deepstride
