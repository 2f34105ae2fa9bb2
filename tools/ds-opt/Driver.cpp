// Runs the phases of Phases.def over a model: import by the frontend, the pipelines between, code generation. Prints
// diagnostics and reports, writes IR where it was asked for. What a phase does is in passes/Pipelines.cpp.
#include "tools/ds-opt/Driver.h"

#include "codegen/Package.h"
#include "codegen/cpu/Target.h"
#include "dialects/ds/Recomputation.h"
#include "dialects/train/TrainDialect.h"
#include "frontends/onnx/convert/Passes.h"
#include "frontends/onnx/dialect/Onnx.h"
#include "frontends/onnx/reader/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "passes/Report.h"
#include "passes/optimization/Calibration.h"
#include "passes/training/Passes.h"
#include "tools/ds-opt/Calibration.h"
#include "tools/ds-opt/CompileCache.h"
#include "tools/ds-opt/ContractWatch.h"
#include "tools/ds-opt/Crash.h"
#include "tools/ds-opt/Diagnostics.h"
#include "tools/ds-opt/Learned.h"
#include "tools/ds-opt/Machine.h"
#include "tools/ds-opt/MemoryBudget.h"
#include "tools/ds-opt/OptionTable.h"
#include "tools/ds-opt/PackageDescription.h"
#include "tools/ds-opt/Registration.h"
#include "tools/ds-opt/TrainingPlan.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <tuple>

using namespace mlir;

namespace deepstride {

namespace {

class Driver {
public:
  explicit Driver(const DriverOptions &options);
  int run();

private:
  enum class Outcome { Done, Diagnosed, Bug };

  Outcome import();
  Outcome runPhase(Phase phase, ModuleOp program, const CpuTarget &target);
  Outcome runPasses(Phase phase, ModuleOp program, function_ref<void(OpPassManager &)> build);
  Outcome diagnosedOrBug(StringRef what, StringRef file);
  LogicalResult convert();
  Outcome calibrate();
  FailureOr<DictionaryAttr> observe(const CpuTarget &host, int64_t &first);
  void start();
  int compileVariants(Phase last);
  int exitCode(Outcome outcome);
  bool dump(Phase phase, ModuleOp program, StringRef variant);
  Outcome fitMemory();
  std::optional<uint64_t> bytesWith(int64_t values, const std::map<std::string, int64_t> &dims, int64_t &count);

  const DriverOptions &options;
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<DiagnosticPrinter> diagnostics;
  OwningOpRef<ModuleOp> module;
  std::vector<CpuTarget> targets;
  std::unique_ptr<PackageWriter> package;
  std::unique_ptr<Calibration> calibration;
  ReportTable report, unreported;
  bool isCalibrating = false; // what passes do then is nobody's business
  std::string destination, bug, reproducer;
  std::unique_ptr<CompileCache> cache;
  std::vector<std::string> externalFiles; // besides the model, read by the import
};

} // namespace

Driver::Driver(const DriverOptions &options) : options(options) {}

void Driver::start() {
  registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry);
  context->loadDialect<ds::DSDialect, train::TrainDialect, func::FuncDialect, scf::SCFDialect, tensor::TensorDialect>();
  context->printOpOnDiagnostic(false); // users know their model, not our IR
  diagnostics = std::make_unique<DiagnosticPrinter>(context.get(), options.report);
}

static PassReport::Counts countOps(ModuleOp module, StringRef what) {
  PassReport::Counts counts;
  int64_t number = 0;
  module.walk([&](Operation *op) { number += isa<ds::ResultInference, ::deepstride::onnx::NodeOp>(op); });
  PassReport::add(counts, what, number);
  return counts;
}

LogicalResult Driver::convert() {
  onnx::ConversionOptions conversion;
  conversion.dims = options.dims;
  conversion.shapes = options.shapes;
  conversion.storesFloats = options.training.isOn;
  return onnx::convertOnnxToDs(*module, conversion);
}

Driver::Outcome Driver::import() {
  enterStage("import");
  if (options.crashIn == Phase::Import)
    abort();
  if (options.isOnnx()) {
    auto imported = ::deepstride::onnx::importOnnx(options.input, *context, {}, &externalFiles);
    if (failed(imported))
      return diagnosedOrBug("the import failed without a message", "");
    module = std::move(*imported);
    report.add("import", countOps(*module, "nodes"));
  } else {
    module = parseSourceFile<ModuleOp>(options.input, ParserConfig(context.get()));
    if (!module)
      return diagnosedOrBug("the parser failed without a message", "");
    module->walk([&](ds::SourceOp source) { externalFiles.push_back(source.getFile().str()); });
    llvm::sort(externalFiles);
    externalFiles.erase(llvm::unique(externalFiles), externalFiles.end());
  }
  if (options.emit == Emit::Onnx)
    return Outcome::Done;
  bool isOnnx = false;
  module->walk([&](Operation *op) { isOnnx |= isa<::deepstride::onnx::OnnxDialect>(op->getDialect()); });
  if (isOnnx && !options.isOnnx())
    cache.reset(); // ranges of files are attributes here, and the conversion may read them
  if (!isOnnx && !options.isOnnx() && !options.shapes.empty()) {
    emitError(module->getLoc()) << "--shape expects a model; a program states the shapes of its inputs";
    return Outcome::Diagnosed;
  }
  if ((isOnnx || options.isOnnx()) && failed(convert()))
    return diagnosedOrBug("the conversion failed without a message", "");
  report.add("import", countOps(*module, "ops"));
  return runPasses(Phase::Import, *module, [](OpPassManager &pm) { addContract(pm, Phase::Import); });
}

Driver::Outcome Driver::diagnosedOrBug(StringRef what, StringRef file) {
  if (diagnostics->errorCount() > 0)
    return Outcome::Diagnosed;
  bug = what.str();
  reproducer = file.empty() ? options.input : file.str();
  return Outcome::Bug;
}

Driver::Outcome Driver::runPasses(Phase phase, ModuleOp program, function_ref<void(OpPassManager &)> build) {
  bool contractBroken = false;
  std::string file = reproducerPath(".mlir");
  PassManager pm(context.get(), ModuleOp::getOperationName());
  pm.enableCrashReproducerGeneration(file);
  pm.addInstrumentation(std::make_unique<PassReportCollector>(isCalibrating ? unreported : report));
  pm.addInstrumentation(std::make_unique<ContractWatch>(contractBroken));
  build(pm);
  if (options.crashIn == phase)
    abort();
  if (succeeded(pm.run(program)))
    return Outcome::Done;
  if (contractBroken && options.isOnnx()) {
    bug = ("phase '" + phaseInfo(phase).name + "' broke its contract").str();
    reproducer = file;
    return Outcome::Bug;
  }
  Outcome outcome =
      diagnosedOrBug("a pass of phase '" + phaseInfo(phase).name.str() + "' failed without a message", file);
  if (outcome == Outcome::Diagnosed)
    (void)llvm::sys::fs::remove(file); // the model is wrong, not ds-opt
  return outcome;
}

Driver::Outcome Driver::runPhase(Phase phase, ModuleOp program, const CpuTarget &target) {
  bool isReference = options.reference != Reference::Off;
  enterStage(phaseInfo(phase).name);
  // Unfolded, a program reaches the memory phase as it was written: gradients must be expanded, nothing else has to be.
  if (!options.folds && phase > Phase::Import && phase < Phase::Memory)
    return runPasses(phase, program, [&](OpPassManager &pm) {
      if (phase == Phase::Training)
        pm.addNestedPass<func::FuncOp>(createDifferentiate());
    });
  switch (phase) {
  case Phase::Import: return import();
  case Phase::Graph:
    return runPasses(phase, program, [&](OpPassManager &pm) {
      GraphPipelineOptions graph;
      // The conversion from ONNX pins dimensions itself: it decides by sizes.
      if (!options.isOnnx())
        for (const auto &dim : options.dims)
          graph.dims.push_back((dim.getKey() + "=" + Twine(dim.getValue())).str());
      graph.promote = options.training.isOn;
      graph.head = options.training.head;
      graph.classes = options.training.classes;
      graph.seed = options.training.seed.value_or(0);
      graph.tie = !options.training.unties;
      graph.train = options.training.train;
      graph.freeze = options.training.freeze;
      graph.recompose = !isReference;
      graph.linear = options.quantize.bits > 0 || !options.rounds.empty(); // whose weights are what is quantized
      graph.widen = options.reference == Reference::F64;
      buildGraphPipeline(pm, graph);
    });
  case Phase::Training:
    return runPasses(phase, program, [&](OpPassManager &pm) {
      TrainingPipelineOptions training;
      training.loss = options.training.loss;
      training.logits = options.training.logits;
      training.labels = options.training.labels;
      training.shiftLabels = options.training.shiftsLabels;
      training.ignoreIndex = options.training.ignoredLabel.value_or(-100);
      training.noDecay = options.training.noDecay;
      if (const auto &config = options.training.resolved) {
        training.optimizer = ::ds::config::optimizerText(config->optimizer);
        training.clip = config->gradientClipping;
        training.gates = config->dropsLayers;
        training.shareStage = config->optimizer.compresses ? 0 : config->zero.stage;
        training.reduceBucket = config->zero.reduceBucket;
        if (const ::ds::QuantizationSettings &quantization = config->quantization; quantization.isEnabled) {
          training.quantizeGroups = quantization.groups;
          training.quantizeScheme = quantization.isSymmetric ? "symmetric" : "asymmetric";
          training.quantizeRounding = quantization.isStochastic ? "stochastic" : "nearest";
          training.quantizeMixed = quantization.isMixed;
          if (const ::ds::EigenvalueSettings &eigenvalue = quantization.eigenvalue; eigenvalue.isEnabled) {
            training.layerName = eigenvalue.layerName;
            training.layers = eigenvalue.layers;
            training.stability = eigenvalue.stability;
          }
        }
      }
      buildTrainingPipeline(pm, training);
    });
  case Phase::Distribution:
    return runPasses(phase, program,
                     [](OpPassManager &pm) { buildDistributionPipeline(pm, DistributionPipelineOptions()); });
  case Phase::Optimization:
    return runPasses(phase, program, [&](OpPassManager &pm) {
      OptimizationPipelineOptions optimization;
      optimization.fusion = isReference ? Fusion::None : options.fusion;
      optimization.machine = isReference ? "none" : target.machine;
      optimization.quantize = options.quantize.bits;
      optimization.group = options.quantize.group;
      optimization.scheme = options.quantize.scheme;
      optimization.keep = options.quantize.keep;
      optimization.mixed = options.quantize.mixed && !options.quantize.activations; // rows need one scale a column
      optimization.activations = options.quantize.activations;
      optimization.round = options.rounds;
      optimization.trains = options.training.isOn;
      optimization.report = options.report;
      buildOptimizationPipeline(pm, optimization);
    });
  case Phase::Memory:
    return runPasses(phase, program, [](OpPassManager &pm) { buildMemoryPipeline(pm, MemoryPipelineOptions()); });
  case Phase::Codegen:
    if (options.crashIn == Phase::Codegen)
      abort();
    return succeeded(package->addVariant(program, target, isReference))
               ? Outcome::Done
               : diagnosedOrBug("code generation failed without a message", "");
  }
  llvm_unreachable("all phases handled");
}

/// Writes a package that sums what the rounding of weights is judged by, from the given weight on: of which weights,
/// and which is the first that is left, or -1.
FailureOr<DictionaryAttr> Driver::observe(const CpuTarget &host, int64_t &first) {
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

Driver::Outcome Driver::calibrate() {
  enterStage("calibration");
  auto fail = [](const Twine &message) {
    llvm::errs() << "ds-opt: error: --calibrate: " << message << "\n";
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
  for (int64_t first = 0; first >= 0;) {
    auto observed = observe(*host, first);
    if (failed(observed))
      return diagnosedOrBug("the program for calibration could not be compiled", "");
    if (observed->empty())
      break; // there is nothing to quantize, as quantization will say
    if (std::string wrong = calibration->add(*observed); !wrong.empty())
      return fail(wrong);
  }
  isCalibrating = false;
  PassReport::Counts counts;
  PassReport::add(counts, "calls", calibration->calls());
  PassReport::add(counts, "weights observed", static_cast<int64_t>(calibration->weights()));
  report.add("calibration", counts);
  calibration->annotate(*module);
  return Outcome::Done;
}

bool Driver::dump(Phase phase, ModuleOp program, StringRef variant) {
  if (options.dumpDir.empty() || phase == Phase::Codegen)
    return true;
  if (std::error_code code = llvm::sys::fs::create_directories(options.dumpDir)) {
    llvm::errs() << "ds-opt: error: cannot create '" << options.dumpDir << "': " << code.message() << "\n";
    return false;
  }
  SmallString<128> path(options.dumpDir);
  llvm::sys::path::append(path, variant, phaseInfo(phase).dumpName());
  if (!variant.empty()) // a failure shows when the file is written
    (void)llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path));
  return writeModule(program, path, /*withLocations=*/true);
}

int Driver::exitCode(Outcome outcome) {
  if (outcome == Outcome::Bug)
    return reportInternalError(bug, reproducer);
  return outcome == Outcome::Done ? 0 : 1;
}

/// The phases from optimization on depend on the target: each variant runs them on a copy of its own.
int Driver::compileVariants(Phase last) {
  bool writesPackage = last == Phase::Codegen;
  if (writesPackage)
    package = std::make_unique<PackageWriter>(destination, describeOptions(options));
  if (writesPackage && !keepGraph(*module, options, *package))
    return 1;
  for (const CpuTarget &target : targets) {
    OwningOpRef<ModuleOp> program = module->clone();
    StringRef variant = targets.size() > 1 ? StringRef(target.name) : StringRef();
    for (Phase phase : {Phase::Optimization, Phase::Memory, Phase::Codegen}) {
      if (phase > last)
        break;
      if (int code = exitCode(runPhase(phase, *program, target)))
        return code;
      if (!dump(phase, *program, variant))
        return 1;
    }
    if (!writesPackage) {
      module = std::move(program); // of several variants, the first is shown
      return 0;
    }
  }
  if (cache)
    cache->watch(destination);
  if (succeeded(package->finish(module->getLoc()))) {
    if (cache)
      cache->keep(externalFiles, diagnostics->text());
    return 0;
  }
  return exitCode(diagnosedOrBug("the package could not be finished", ""));
}

/// Plans a copy of the program that computes so many activations again: what it takes on the target that takes most,
/// and how many there are.
std::optional<uint64_t> Driver::bytesWith(int64_t values, const std::map<std::string, int64_t> &dims, int64_t &count) {
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
Driver::Outcome Driver::fitMemory() {
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

int Driver::run() {
  auto resolved = resolveTargets(options);
  if (!resolved)
    return 2;
  targets = std::move(*resolved);
  Phase last = options.check                ? Phase::Memory
               : options.stopAfter          ? *options.stopAfter
               : options.emit == Emit::Onnx ? Phase::Import
               : options.emit == Emit::Mlir ? Phase::Memory
                                            : Phase::Codegen;
  if (last == Phase::Codegen) {
    std::string reason; // before the work, not after it
    std::tie(destination, reason) = packageDestination(options.output);
    if (!reason.empty()) {
      llvm::errs() << "ds-opt: error: cannot write '" << options.output << "': " << reason << "\n";
      return 1;
    }
    enterStage("cache");
    cache = std::make_unique<CompileCache>(options, targets);
    if (cache->deliver(destination))
      return 0;
  }
  start();
  for (Phase phase : {Phase::Import, Phase::Graph, Phase::Training, Phase::Distribution}) {
    if (phase > last)
      break;
    if (int code = exitCode(runPhase(phase, phase == Phase::Import ? ModuleOp() : *module, targets.front())))
      return code;
    if (!dump(phase, *module, ""))
      return 1;
  }
  if (last >= Phase::Optimization)
    if (int code = exitCode(fitMemory()))
      return code;
  if (!options.calibrate.empty())
    if (int code = exitCode(calibrate()))
      return code;
  if (last >= Phase::Optimization)
    if (int code = compileVariants(last))
      return code;
  enterStage("output");
  // A file may be compiled further, and then names its nodes; what goes to a terminal is read.
  bool keepsLocations = options.printLocations || (options.emit != Emit::Nothing && !options.output.empty());
  bool writesModule = !options.check && last != Phase::Codegen;
  if (options.check)
    llvm::outs() << options.input << ": supported\n";
  if (writesModule && failed(writeResult(*module, options, keepsLocations)))
    return 1;
  if (options.report)
    report.print(writesModule && options.output.empty() ? llvm::errs() : llvm::outs());
  return 0;
}

int runDriver(DriverOptions options) { return resolveTraining(options) ? Driver(options).run() : 1; }

} // namespace deepstride
