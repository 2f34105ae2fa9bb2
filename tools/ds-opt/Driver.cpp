// Runs the phases of Phases.def over a model: import by the frontend, the pipelines between, code generation. Prints
// diagnostics and reports, writes IR where it was asked for. What a phase does is in passes/Pipelines.cpp.
#include "tools/ds-opt/Driver.h"

#include "dialects/train/TrainDialect.h"
#include "frontends/onnx/convert/Passes.h"
#include "frontends/onnx/dialect/Onnx.h"
#include "frontends/onnx/reader/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Pipelines.h"
#include "passes/training/Passes.h"
#include "tools/ds-opt/Compilation.h"
#include "tools/ds-opt/ContractWatch.h"
#include "tools/ds-opt/Crash.h"
#include "tools/ds-opt/InputsReport.h"
#include "tools/ds-opt/Learned.h"
#include "tools/ds-opt/Machine.h"
#include "tools/ds-opt/Message.h"
#include "tools/ds-opt/ModuleFile.h"
#include "tools/ds-opt/OptionTable.h"
#include "tools/ds-opt/PackageDescription.h"
#include "tools/ds-opt/Progress.h"
#include "tools/ds-opt/Registration.h"
#include "tools/ds-opt/Resume.h"
#include "tools/ds-opt/TrainingPhase.h"
#include "tools/ds-opt/TrainingPlan.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <tuple>

using namespace mlir;

namespace deepstride {

Compilation::Compilation(const DriverOptions &options) : options(options), instruments(!options.mlirOptions.empty()) {}

void Compilation::start() {
  registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry);
  context->loadDialect<ds::DSDialect, train::TrainDialect, func::FuncDialect, scf::SCFDialect, tensor::TensorDialect>();
  if (!options.mlirOptions.empty())
    context->disableMultithreading();  // what passes print is in their order then, as it must be for whole modules
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

LogicalResult Compilation::convert() {
  onnx::ConversionOptions conversion;
  conversion.dims = options.dims;
  conversion.same = options.same;
  conversion.shapes = options.shapes;
  conversion.storesFloats = options.training.isOn;
  return onnx::convertOnnxToDs(*module, conversion);
}

Compilation::Outcome Compilation::import() {
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
    bool isDump = (*module)->removeAttr(compilationAttr) != nullptr;
    if (isDump && !options.done && !options.arguments.empty()) {
      emitError(module->getLoc()) << "a program of --dump-dir compiles on from where it was dumped: expected its file, "
                                     "found a stream";
      return Outcome::Diagnosed;
    }
    module->walk([&](ds::SourceOp source) { externalFiles.push_back(source.getFile().str()); });
    if (options.done && options.training.isOn)
      externalFiles.push_back(options.model);
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
  // An edited program keeps the promises of its phase, or whoever edited it learns which one it does not.
  Phase last = options.done.value_or(Phase::Import);
  return runPasses(last, *module, [&](OpPassManager &pm) {
    // Passes of the import phase stand here; it has no pipeline of its own.
    addContract(pm, last);
  });
}

Compilation::Outcome Compilation::diagnosedOrBug(StringRef what, StringRef file) {
  if (diagnostics->errorCount() > 0)
    return Outcome::Diagnosed;
  bug = what.str();
  reproducer = file.empty() ? options.input : file.str();
  return Outcome::Bug;
}

/// What MLIR's options ask for, and where the program goes when a pass crashes.
bool Compilation::attach(PassManager &pm, const std::string &file) {
  if (!Instruments::namesReproducer(options.mlirOptions))
    pm.enableCrashReproducerGeneration(file);
  return isCalibrating || instruments.attach(pm);
}

/// Passes that the user has put behind a phase.
Compilation::Outcome Compilation::runPassesAfter(Phase phase, ModuleOp program) {
  for (const auto &[after, text] : options.passesAfter) {
    if (after != phase || isCalibrating)
      continue;
    auto passes = parsePassPipeline(text);
    if (failed(passes))
      return diagnosedOrBug("a pipeline that was parsed is none", "");
    isForeign = true;
    Outcome outcome = runPasses(phase, program, [&](OpPassManager &pm) { pm = *passes; });
    isForeign = false;
    if (outcome != Outcome::Done)
      return outcome;
  }
  return Outcome::Done;
}

Compilation::Outcome Compilation::runPasses(Phase phase, ModuleOp program, function_ref<void(OpPassManager &)> build) {
  bool contractBroken = false;
  std::string file = reproducerPath(".mlir");
  PassManager pm(context.get(), ModuleOp::getOperationName());
  if (!attach(pm, file))
    return Outcome::Diagnosed;
  pm.addInstrumentation(std::make_unique<PassReportCollector>(isCalibrating ? unreported : report));
  pm.addInstrumentation(std::make_unique<ContractWatch>(contractBroken));
  build(pm);
  if (options.crashIn == phase)
    abort();
  if (succeeded(pm.run(program)))
    return Outcome::Done;
  if (contractBroken && options.isOnnx() && !isForeign && options.passesAfter.empty()) {
    bug = ("phase '" + phaseInfo(phase).name + "' broke its contract").str();
    reproducer = file;
    return Outcome::Bug;
  }
  Outcome outcome = diagnosedOrBug(
      "a pass of phase '" + phaseInfo(phase).name.str() + "' crashed, or failed without a message", file);
  if (outcome == Outcome::Diagnosed)
    (void)llvm::sys::fs::remove(file); // the model is wrong, not ds-opt
  return outcome;
}

Compilation::Outcome Compilation::runPhase(Phase phase, ModuleOp program, const CpuTarget &target) {
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
        for (const std::string &dim : options.done ? options.ownDims : dimTexts(options))
          graph.dims.push_back(dim);
      graph.promote = options.training.isOn;
      graph.head = options.training.head;
      graph.classes = options.training.classes;
      graph.seed = options.training.seed.value_or(0);
      graph.tie = !options.training.unties;
      graph.places = options.training.isPlanned;
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
      setTrainingOptions(training, options);
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

bool Compilation::dump(Phase phase, ModuleOp program, StringRef variant) {
  if (options.dumpDir.empty() || phase == Phase::Codegen)
    return true;
  if (std::error_code code = llvm::sys::fs::create_directories(options.dumpDir)) {
    printMessage("ds-opt: error: cannot create '" + options.dumpDir + "': " + code.message());
    return false;
  }
  SmallString<128> path(options.dumpDir);
  llvm::sys::path::append(path, variant, phaseInfo(phase).dumpName());
  if (!variant.empty()) // a failure shows when the file is written
    (void)llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path));
  OwningOpRef<ModuleOp> copy = program.clone();
  auto target = llvm::find_if(targets, [&](const CpuTarget &other) { return other.name == variant; });
  recordCompilation(*copy, phase, options, target == targets.end() ? targets.front() : *target);
  return writeModule(*copy, path, /*withLocations=*/true);
}

int Compilation::exitCode(Outcome outcome) {
  if (outcome == Outcome::Bug)
    return reportInternalError(bug, reproducer);
  return outcome == Outcome::Done ? 0 : 1;
}

/// The phases from optimization on depend on the target: each variant runs them on a copy of its own.
int Compilation::compileVariants(Phase last) {
  bool writesPackage = last == Phase::Codegen;
  if (writesPackage) {
    PackageOptions described = describeOptions(options);
    described.prepare = [this](PassManager &pm) { return success(instruments.attach(pm)); };
    package = std::make_unique<PackageWriter>(destination, std::move(described));
  }
  if (writesPackage && !keepGraph(*module, options, *package))
    return 1;
  for (const CpuTarget &target : targets) {
    OwningOpRef<ModuleOp> program = module->clone();
    StringRef variant = targets.size() > 1 ? StringRef(target.name) : StringRef();
    for (Phase phase : {Phase::Optimization, Phase::Memory, Phase::Codegen}) {
      if (phase > last)
        break;
      if (!options.isDone(phase))
        if (int code = exitCode(runPhase(phase, *program, target)))
          return code;
      if (int code = options.isDone(phase) ? 0 : exitCode(runPassesAfter(phase, *program)))
        return code;
      if (phase == Phase::Memory && !slow && options.reference == Reference::Off)
        slow = findSlowKernels(*program);
      if (!options.isDone(phase) && !dump(phase, *program, variant))
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

/// A model that cannot be converted has inputs, too.
int Compilation::listInputs() {
  enterStage("import");
  auto imported = ::deepstride::onnx::importOnnx(options.input, *context, {}, &externalFiles);
  if (failed(imported))
    return exitCode(diagnosedOrBug("the import failed without a message", ""));
  module = std::move(*imported);
  onnx::nameInputDimensions(*module);
  InputsReport inputs(*module);
  bool isPinned = !options.dims.empty() || !options.same.empty() || !options.shapes.empty();
  std::string reason;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && reason.empty())
      reason = diagnostic.str();
    return success(!isPinned); // what the command line has wrong is told as ever
  });
  bool isConverted = succeeded(convert());
  if (!isConverted && isPinned)
    return 1;
  if (isConverted)
    inputs.study(*module);
  inputs.print(llvm::outs());
  if (!isConverted)
    llvm::outs() << "what steers branches is not known, as the model cannot be compiled: " << reason << "\n";
  return 0;
}

int Compilation::run() {
  if (options.listsInputs) {
    start();
    return listInputs();
  }
  auto resolved = resolveTargets(options);
  if (!resolved)
    return 2;
  targets = std::move(*resolved);
  if (std::string reason = checkTarget(options, targets.front()); !reason.empty()) {
    printMessage(options.input + ": error: " + reason);
    return 1;
  }
  Phase last = options.check                ? Phase::Memory
               : options.stopAfter          ? *options.stopAfter
               : options.emit == Emit::Onnx ? Phase::Import
               : options.emit == Emit::Mlir ? Phase::Memory
                                            : Phase::Codegen;
  if (last == Phase::Codegen) {
    std::string reason; // before the work, not after it
    std::tie(destination, reason) = packageDestination(options.output);
    if (!reason.empty()) {
      printMessage("ds-opt: error: cannot write '" + options.output + "': " + reason);
      return 1;
    }
    enterStage("cache");
    cache = std::make_unique<CompileCache>(options, targets);
    if (cache->deliver(destination)) {
      printSummary(/*isCopied=*/true);
      return 0;
    }
  }
  start();
  for (Phase phase : {Phase::Import, Phase::Graph, Phase::Training, Phase::Distribution}) {
    if (phase > last)
      break;
    if (phase != Phase::Import && options.isDone(phase))
      continue; // a dump is imported at its phase
    if (int code = exitCode(runPhase(phase, phase == Phase::Import ? ModuleOp() : *module, targets.front())))
      return code;
    if (options.isDone(phase))
      continue;
    if (int code = exitCode(runPassesAfter(phase, *module)))
      return code;
    if (!dump(phase, *module, ""))
      return 1;
  }
  bool isScheduled = options.isDone(Phase::Optimization);
  if (last >= Phase::Optimization && !isScheduled)
    if (int code = exitCode(fitMemory()))
      return code;
  if (!options.calibrate.empty() && !isScheduled)
    if (int code = exitCode(calibrate()))
      return code;
  if (last >= Phase::Optimization)
    if (int code = compileVariants(last))
      return code;
  diagnostics->printRemarks();
  enterStage("output");
  // A file may be compiled further, and then names its nodes; what goes to a terminal is read.
  bool keepsLocations = options.printLocations || (options.emit != Emit::Nothing && !options.output.empty());
  bool writesModule = !options.check && last != Phase::Codegen;
  if (options.check)
    llvm::outs() << asLine(options.input + ": supported");
  if (writesModule && failed(writeResult(*module, options, keepsLocations)))
    return 1;
  bool printsModule = writesModule && options.output.empty();
  if (options.report)
    report.print(printsModule ? llvm::errs() : llvm::outs());
  if (options.report || options.check)
    printSlowKernels(printsModule ? llvm::errs() : llvm::outs());
  if (last == Phase::Codegen)
    printSummary(/*isCopied=*/false);
  return 0;
}

void Compilation::printSlowKernels(llvm::raw_ostream &stream) const {
  if (!slow || slow->lines.empty())
    return;
  stream << slow->summary() << ":\n";
  for (const std::string &line : slow->lines)
    stream << asLine("  " + line);
}

/// For who watches; scripts have the exit code.
void Compilation::printSummary(bool isCopied) const {
  if (!Progress::isWatched() || options.arguments.empty()) // --verify-numerics compiles, too
    return;
  uint64_t bytes = 0;
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator file(destination, error), end; file != end && !error;
       file.increment(error))
    if (auto status = file->status(); status && status->type() == llvm::sys::fs::file_type::regular_file)
      bytes += status->getSize();
  constexpr double kilo = 1e3, mega = 1e6;
  auto size = static_cast<double>(bytes);
  bool isLarge = size >= mega;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  clearProgress();
  llvm::errs() << "ds-opt: " << options.output << ": "
               << llvm::formatv("{0:f1} s, {1:f1} {2}", seconds, size / (isLarge ? mega : kilo), isLarge ? "MB" : "kB");
  if (isCopied)
    llvm::errs() << ", from the cache";
  if (int64_t layers = report.total("recognize-layers", "layers"))
    llvm::errs() << ", " << layers << (layers == 1 ? " layer" : " layers") << " recognised";
  if (slow && !slow->lines.empty())
    llvm::errs() << ", " << slow->summary() << " (--report names them)";
  llvm::errs() << "\n";
}

/// What is wrong with passes that the command line names, in one line; nothing where they are right.
static std::string findPasses(const DriverOptions &options) {
  if (!options.passesAfter.empty())
    registerAllPassesAndPipelines();
  for (const auto &after : options.passesAfter) {
    const std::string &text = after.second;
    std::string said;
    llvm::raw_string_ostream stream(said);
    auto passes = parsePassPipeline(text, stream);
    auto fail = [&](const Twine &what) {
      return ("--passes-after=" + phaseInfo(after.first).name + ":" + text + ": " + what).str();
    };
    if (failed(passes))
      return fail("expected passes as --pass-pipeline has them: " + StringRef(said).trim().split('\n').first);
    if (passes->getOpAnchorName() != ModuleOp::getOperationName())
      return fail("expected passes of a builtin.module, found those of " + passes->getOpAnchorName());
  }
  return "";
}

int runDriver(DriverOptions options) {
  std::string wrong = loadPassPlugins(options.plugins);
  bool isWrong = !wrong.empty() || !parseMlirOptions(options.mlirOptions, wrong);
  if (!isWrong)
    wrong = findPasses(options);
  if (isWrong || !wrong.empty()) {
    if (!wrong.empty())
      printMessage("ds-opt: " + wrong);
    return 2;
  }
  if (isNoFile(options.input))
    return 1;
  if (int code = resumeOptions(options))
    return code;
  if (!resolveTraining(options))
    return 1;
  Compilation compilation(options); // outlives the line that shows where it stands
  Progress progress;
  return compilation.run();
}

} // namespace deepstride
