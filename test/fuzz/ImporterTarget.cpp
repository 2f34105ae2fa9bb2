// Any bytes read as a model give a program that satisfies the contract of the training phase, or at least one error:
// what ds-opt does before it generates code. A failure without a message and a broken contract are findings. So is what
// the conversion trips over after it was refused one of its ops: of some inputs, or, in the target `refusals`, each op
// of all inputs in turn.
#include "dialects/ds/DsDialect.h"
#include "dialects/train/TrainDialect.h"
#include "frontends/onnx/convert/Passes.h"
#include "frontends/onnx/dialect/Onnx.h"
#include "frontends/onnx/reader/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "test/fuzz/ProtoMutator.h"
#include "test/fuzz/TemporaryFile.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::fuzz;

namespace {

class ContractWatch : public PassInstrumentation {
public:
  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (pass->getArgument() == "ds-verify-contract")
      finding("a contract is broken");
  }
};

/// What several runs share: making it takes longer than a run. What a context has uniqued it keeps, so that it cannot
/// serve for ever.
struct Compiler {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  unsigned errors = 0;
  std::unique_ptr<PassManager> import, graph, training;

  Compiler() {
    context.loadDialect<ds::DSDialect, train::TrainDialect, ::deepstride::onnx::OnnxDialect, func::FuncDialect,
                        scf::SCFDialect, tensor::TensorDialect>();
    context.printOpOnDiagnostic(false);
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
      (void)diagnostic.str(); // as if it were printed
    });
    import = makePasses([](OpPassManager &pm) { addContract(pm, Phase::Import); });
    graph = makePasses([](OpPassManager &pm) { buildGraphPipeline(pm, GraphPipelineOptions()); });
    training = makePasses([](OpPassManager &pm) { buildTrainingPipeline(pm, TrainingPipelineOptions()); });
  }

  template <typename Build> std::unique_ptr<PassManager> makePasses(Build build) {
    auto pm = std::make_unique<PassManager>(&context, ModuleOp::getOperationName());
    pm->addInstrumentation(std::make_unique<ContractWatch>());
    build(*pm);
    return pm;
  }

  /// Whether the step succeeded; one that did not must have said why.
  bool done(LogicalResult result, const char *step) {
    if (failed(result) && errors == 0)
      finding(std::string(step) + " failed without a message");
    return succeeded(result);
  }

  /// With an op refused in the conversion there is nothing after it.
  /// Returns whether the conversion had as many ops and went on without this one.
  bool refuse(const std::string &path, unsigned refusedOp) {
    errors = 0;
    ::deepstride::onnx::ConversionOptions options;
    options.refusedOp = refusedOp;
    auto module = ::deepstride::onnx::importOnnx(path, context);
    return succeeded(module) && !done(::deepstride::onnx::convertOnnxToDs(**module, options), "the conversion");
  }

  void compile(const std::string &path) {
    errors = 0;
    auto module = ::deepstride::onnx::importOnnx(path, context);
    if (done(success(succeeded(module)), "the import") &&
        done(::deepstride::onnx::convertOnnxToDs(**module), "the conversion") &&
        done(import->run(**module), "the import phase") && done(graph->run(**module), "the graph phase"))
      done(training->run(**module), "the training phase");
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr unsigned runsPerContext = 500;
  static TemporaryFile file("model.onnx"), external("data.bin");
  static std::unique_ptr<Compiler> compiler;
  static unsigned runs = 0;
  if (runs == 0)
    external.write(std::string(4096, 'd').data(), 4096);
  if (runs++ % runsPerContext == 0)
    compiler = std::make_unique<Compiler>();
  file.write(data, size);
#ifdef DS_FUZZ_REFUSES_EACH_OP
  constexpr unsigned mostRefusals = 200;
  for (unsigned op = 1; op <= mostRefusals && compiler->refuse(file.path(), op); ++op)
    ;
#else
  compiler->compile(file.path());
  // Patterns must survive any refusal, and mutations reach few: of some inputs an op is refused whatever it is.
  size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char *>(data), size});
  constexpr size_t share = 4, mostOps = 64;
  if (hash % share == 0)
    compiler->refuse(file.path(), static_cast<unsigned>(1 + hash / share % mostOps));
#endif
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  return mutateProto(data, size, maxSize, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize, const uint8_t *second,
                                            size_t secondSize, uint8_t *out, size_t maxSize, unsigned seed) {
  return crossProtos(first, firstSize, second, secondSize, out, maxSize, seed);
}
