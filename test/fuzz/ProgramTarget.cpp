// Any verified program of ds ops compiles or is refused with a message; whatever places, counts, indices and sizes a
// run then brings, the call gives a result or an Error, and no access leaves its buffer: kernels are compiled for the
// address sanitizer, and the runtime of this build gives each buffer an allocation of its own.
#include "codegen/Package.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/ds/DsDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "runtime/core/Error.h"
#include "runtime/core/Session.h"
#include "test/fuzz/ProgramGenerator.h"
#include "test/fuzz/TemporaryFile.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

using namespace mlir;
using namespace deepstride;
using namespace deepstride::fuzz;

namespace {

/// How often each program runs, every time with other places, counts, indices and sizes.
constexpr unsigned drawsPerProgram = 20;

/// What was really run: programs that are refused and calls that end with an Error find nothing.
struct Tally {
  unsigned programs = 0, compiled = 0, calls = 0, results = 0;
  ~Tally() {
    fprintf(stderr, "compiled %u of %u programs; %u of %u calls gave a result\n", compiled, programs, results, calls);
  }
} tally;

struct Compiler {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  unsigned errors = 0;
  bool isShown = getenv("DS_SHOW_PROGRAM") != nullptr; // to see what a finding is about

  Compiler() {
    registerAllDialects(registry);
    registerAllExtensions(registry);
    registry.insert<deepstride::ds::DSDialect, dist::DistDialect, train::TrainDialect>();
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    context->loadDialect<deepstride::ds::DSDialect, dist::DistDialect, train::TrainDialect, func::FuncDialect,
                         scf::SCFDialect, tensor::TensorDialect>();
    context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
      std::string text = diagnostic.str();
      if (isShown)
        fprintf(stderr, "%s\n", text.c_str());
    });
  }

  /// Whether the step succeeded; one that did not must have said why.
  bool done(LogicalResult result, const char *step) {
    if (failed(result) && errors == 0)
      finding(std::string(step) + " failed without a message");
    return succeeded(result);
  }

  template <typename Build> bool run(ModuleOp module, const char *phase, Build build) {
    PassManager pm(context.get(), ModuleOp::getOperationName());
    build(pm);
    return done(pm.run(module), phase);
  }

  /// Writes a package; returns whether the program was accepted.
  bool compile(Choices &choices, const std::string &path) {
    errors = 0;
    auto module = generateProgram(*context, choices);
    if (!module || failed(verify(*module)))
      return false;
    errors = 0;
    if (isShown)
      module->dump();
    std::string error;
    auto target = resolveCpuTarget(choices.oneIn(4) ? "x86-64-v3" : "host", error);
    if (!target)
      finding("this machine is no target: " + error);
    target->sanitize = true;
    bool reference = choices.oneIn(4);
    GraphPipelineOptions graph;
    graph.recompose = !reference;
    OptimizationPipelineOptions optimization;
    Fusion kinds[] = {Fusion::Specialized, Fusion::Generic, Fusion::None};
    optimization.fusion = reference ? Fusion::None : kinds[choices.oneIn(4) ? 1 + choices.below(2) : 0];
    optimization.machine = reference ? "none" : std::to_string(target->vectorBits);
    if (!run(*module, "the import phase", [](OpPassManager &pm) { addContract(pm, Phase::Import); }) ||
        !run(*module, "the graph phase", [&](OpPassManager &pm) { buildGraphPipeline(pm, graph); }) ||
        !run(*module, "the optimization phase",
             [&](OpPassManager &pm) { buildOptimizationPipeline(pm, optimization); }) ||
        !run(*module, "the memory phase", [](OpPassManager &pm) { buildMemoryPipeline(pm, MemoryPipelineOptions()); }))
      return false;
    PackageWriter package(path, {"program", {}, {}});
    return done(package.addVariant(*module, *target, reference), "code generation") &&
           done(package.finish(module->getLoc()), "the package");
  }
};

/// Fills a tensor: floats of every kind, indices and places mostly near those that small tensors have.
void fill(::ds::Tensor &tensor, Choices &choices) {
  static const std::vector<int64_t> far = {
      -1, -2, 8, 100, -100000000, INT32_MIN, INT32_MAX, int64_t(1) << 40, INT64_MIN, INT64_MAX};
  static const std::vector<float> floats = {0.0f, -0.0f, 1.0f, -2.5f, 1e-40f, 3e38f, INFINITY, -INFINITY, NAN};
  bool isHostile = choices.oneIn(4);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    int64_t integer = isHostile && choices.oneIn(3) ? choices.among(far) : static_cast<int64_t>(choices.below(6));
    float real = choices.oneIn(8) ? choices.among(floats) : static_cast<float>(choices.below(64)) / 16 - 2;
    switch (tensor.getType()) {
    case ::ds::ElementType::F32: std::memcpy(tensor.data() + 4 * i, &real, 4); break;
    case ::ds::ElementType::I64: std::memcpy(tensor.data() + 8 * i, &integer, 8); break;
    case ::ds::ElementType::I32: {
      auto narrow = static_cast<int32_t>(integer);
      std::memcpy(tensor.data() + 4 * i, &narrow, 4);
      break;
    }
    case ::ds::ElementType::I1: tensor.data()[i] = static_cast<uint8_t>(integer & 1); break;
    default: // f16: any bits
      for (size_t byte = 0; byte < ::ds::typeSize(tensor.getType()); ++byte)
        tensor.data()[i * static_cast<int64_t>(::ds::typeSize(tensor.getType())) + static_cast<int64_t>(byte)] =
            static_cast<uint8_t>(choices.below(256));
    }
  }
}

void run(const std::string &path, Choices &choices) {
  static const std::vector<int64_t> sizes = {0, 1, 2, 3, 4, 5, 7, 17};
  ::ds::LoadOptions load;
  load.verify = false;
  auto package = ::ds::Package::load(path, load);
  ::ds::SessionOptions options;
  options.threads = 1;
  ::ds::Session session(package, options);
  const ::ds::EntryInfo &entry = session.entry(0);
  std::vector<::ds::Tensor> outputs;
  for (unsigned draw = 0; draw < drawsPerProgram; ++draw) {
    std::vector<int64_t> symbols(entry.symbols.size());
    ::ds::Pins pins;
    for (size_t i = 0; i < symbols.size(); ++i)
      if (entry.symbols[i].kind == ::ds::SymbolKind::Dim)
        pins[entry.symbols[i].name] = symbols[i] = choices.among(sizes);
    std::vector<::ds::Tensor> inputs;
    std::vector<::ds::TensorView> views;
    for (const ::ds::TensorInfo &info : entry.inputs) {
      inputs.emplace_back(info.type, ::ds::evaluateShape(info.shape, symbols));
      fill(inputs.back(), choices);
    }
    for (const ::ds::Tensor &input : inputs)
      views.push_back(input.view());
    ++tally.calls;
    try {
      session.run(0, views, pins, outputs);
      ++tally.results;
    } catch (const ::ds::Error &error) {
      if (error.getCode() == ::ds::ErrorCode::Internal || error.getCode() == ::ds::ErrorCode::BadPackage)
        finding(std::string("a run failed with ") + error.what());
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr unsigned runsPerContext = 200;
  static std::unique_ptr<Compiler> compiler;
  static unsigned runs = 0;
  static const std::string path = temporaryFolder() + "/program.dsp";
  if (runs++ % runsPerContext == 0)
    compiler = std::make_unique<Compiler>();
  Choices choices(data, size);
  ++tally.programs;
  if (!compiler->compile(choices, path))
    return -1; // not kept: another program may use these bytes
  ++tally.compiled;
  run(path, choices);
  std::filesystem::remove_all(path);
  return 0;
}
