// The pipelines: which passes a phase runs and why in this order. A line without a reason could stand elsewhere in its
// phase. What a pass does is in its own file; golden texts of the pipelines are in test/pipelines.
#include "passes/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/graph/Passes.h"
#include "passes/memory/Passes.h"
#include "passes/optimization/Passes.h"
#include "passes/training/Passes.h"

using namespace mlir;

namespace deepstride {

void addCleanup(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void addContract(OpPassManager &pm, Phase phase) {
  VerifyContractOptions options;
  options.phase = phaseInfo(phase).name.str();
  pm.addPass(createVerifyContract(options));
}

void buildGraphPipeline(OpPassManager &pm, const GraphPipelineOptions &options) {
  if (!options.dims.empty()) {
    // Before folding: a pinned size turns symbolic shape arithmetic into constants.
    PinDimensionsOptions pin;
    pin.dims.assign(options.dims.begin(), options.dims.end());
    pm.addPass(createPinDimensions(pin));
  }
  if (options.promote) { // before folding: what is learned is no constant
    if (!options.head.empty()) {
      AddHeadOptions head;
      head.output = options.head;
      head.classes = options.classes;
      head.seed = options.seed;
      pm.addPass(createAddHead(head));
    }
    TieParametersOptions tie;
    tie.unties = !options.tie;
    tie.places = options.places;
    pm.addPass(createTieParameters(tie));
    PromoteParametersOptions promote;
    promote.train = options.train;
    promote.freeze = options.freeze;
    pm.addPass(createPromoteParameters(promote));
  }
  // Before recipes hold several of them.
  pm.addPass(createListParameters());
  pm.addNestedPass<func::FuncOp>(createFoldShapes());
  // After shapes: what remains constant is data, worth a place in weights.bin.
  pm.addPass(createFoldConstants());
  // Again: numbers that were just evaluated (the square root of a head size) may steer shapes in turn.
  pm.addNestedPass<func::FuncOp>(createFoldShapes());
  // Patterns see one spelling: no identity reshapes, no duplicates of the same product.
  addCleanup(pm);
  if (options.recompose) {
    pm.addNestedPass<func::FuncOp>(createRecomposeLayerNorm());
    // After layer norms, whose variance is the mean square of a centred value.
    pm.addNestedPass<func::FuncOp>(createRecomposeRmsNorm());
    pm.addNestedPass<func::FuncOp>(createRecomposeGelu());
    pm.addNestedPass<func::FuncOp>(createRecomposeRotary());
    pm.addNestedPass<func::FuncOp>(createRecomposeSoftmax());
    // After softmax, whose chain lies inside the attention chain.
    pm.addNestedPass<func::FuncOp>(createRecomposeAttention());
  }
  if (options.recompose) {
    pm.addNestedPass<func::FuncOp>(createSqueezeConvolutions());
    pm.addNestedPass<func::FuncOp>(createUnstackReductions());
  }
  // After attention, which must see matmuls.
  if (options.recompose || options.linear)
    pm.addPass(createRecomposeLinear());
  if (options.recompose) {
    pm.addNestedPass<func::FuncOp>(createUnflattenRows());
    // After attention, whose patterns are of what exporters write.
    pm.addNestedPass<func::FuncOp>(createComposeTransposes());
    // After everything that is recomposed, before fusion takes activations apart from what they gate.
    pm.addNestedPass<func::FuncOp>(createRecognizeLayers());
    // After all patterns: many are of values that have one reader.
    pm.addNestedPass<func::FuncOp>(createMergeDuplicates());
  }
  // After everything that reads constants: here they become casts of what is stored.
  if (options.widen)
    pm.addNestedPass<func::FuncOp>(createWidenFloats());
  addCleanup(pm);
  // Once more: a clean-up may leave one branch of two alike, and with it arithmetic on what is a constant now.
  pm.addNestedPass<func::FuncOp>(createFoldShapes());
  addContract(pm, Phase::Graph);
}

void buildTrainingPipeline(OpPassManager &pm, const TrainingPipelineOptions &options) {
  if (options.gates) { // before the derivative: what is dropped has none
    GateLayersOptions gates;
    gates.output = options.logits.empty() ? options.loss : options.logits;
    pm.addPass(createGateLayers(gates));
  }
  if (!options.loss.empty()) {
    BuildTrainingStepOptions step;
    step.loss = options.loss;
    step.logits = options.logits;
    step.labels = options.labels;
    step.shiftLabels = options.shiftLabels;
    step.ignoreIndex = options.ignoreIndex;
    step.accumulates = options.accumulates;
    step.optimizer = options.optimizer;
    step.clip = options.clip;
    step.noDecay = options.noDecay;
    step.layerName = options.layerName;
    step.layers = options.layers;
    step.stability = options.stability;
    step.shareStage = options.shareStage;
    step.reduceBucket = options.reduceBucket;
    step.gatherBucket = options.gatherBucket;
    step.overlaps = options.overlaps;
    step.sparseTables = options.sparseTables;
    step.wire = options.wire;
    step.gradientsIn = options.gradientsIn;
    step.rounds = options.rounds;
    step.prefetch = options.prefetch;
    step.maxLive = options.maxLive;
    step.maxReuse = options.maxReuse;
    step.persistence = options.persistence;
    step.modelPersistence = options.modelPersistence;
    pm.addPass(createBuildTrainingStep(step));
    if (options.quantizeGroups > 0) { // of whole entries: gradients pass images by
      ScheduleQuantizationOptions quantization;
      quantization.groups = options.quantizeGroups;
      quantization.scheme = options.quantizeScheme;
      quantization.rounding = options.quantizeRounding;
      quantization.mixed = options.quantizeMixed;
      quantization.layerName = options.layerName;
      quantization.layers = options.layers;
      pm.addPass(createScheduleQuantization(quantization));
    }
  }
  pm.addNestedPass<func::FuncOp>(createDifferentiate());
  // What a gradient computes on its way and the program computes, too, is one value from here on.
  addCleanup(pm);
  addContract(pm, Phase::Training);
}

void buildDistributionPipeline(OpPassManager &pm, const DistributionPipelineOptions &) {
  addContract(pm, Phase::Distribution);
}

void buildOptimizationPipeline(OpPassManager &pm, const OptimizationPipelineOptions &options) {
  bool isScheduled = options.machine != "none";
  pm.addPass(createRecoverCodes());
  if (isScheduled) {
    pm.addNestedPass<func::FuncOp>(createFoldRequantization());
    pm.addPass(createMultiplyCodes()); // of what is left: numbers that nothing but products reads
  }
  if (options.observe) { // what would be quantized else
    ObserveProductsOptions observe;
    observe.keep = options.keep;
    observe.first = options.first;
    pm.addPass(createObserveProducts(observe));
  } else if (options.quantize > 0) {
    // Before everything that asks for types and layouts of weights; tables and filters first, so that they alone are
    // enough.
    QuantizeTablesOptions tables;
    constexpr int64_t fewest = 32; // rows have outliers, and reading one takes no time
    tables.group = options.group > 0 ? options.group : fewest;
    tables.keep = options.keep;
    pm.addPass(createQuantizeTables(tables));
    QuantizeFiltersOptions filters;
    filters.group = options.group;
    filters.scheme = options.scheme;
    filters.keep = options.keep;
    pm.addPass(createQuantizeFilters(filters));
    QuantizeWeightsOptions quantize;
    quantize.bits = options.quantize;
    quantize.group = options.group;
    quantize.scheme = options.scheme;
    quantize.keep = options.keep;
    quantize.mixed = options.mixed;
    if (options.round == "bf16") // below
      quantize.floats = options.round;
    pm.addPass(createQuantizeWeights(quantize));
    if (options.activations) {
      if (isScheduled && options.fusion == Fusion::Specialized)
        pm.addPass(
            createMergeProducts()); // while they are f32 by codes; rows become codes once for what is one product
      pm.addPass(createQuantizeActivations());
    }
  }
  if (!options.round.empty()) {                   // what is not quantized
    if (options.round == "bf16" && isScheduled) { // first, so that attention alone is enough
      RoundAttentionOptions attention;
      attention.machine = options.machine;
      pm.addPass(createRoundAttention(attention));
    }
    if (!options.trains) { // before products, too; there filters are computed
      RoundFiltersOptions filters;
      filters.type = options.round;
      filters.machine = options.machine;
      pm.addPass(createRoundFilters(filters));
    }
    RoundProductsOptions round;
    round.type = options.round;
    round.computed = options.trains;
    round.machine = options.machine;
    pm.addPass(createRoundProducts(round));
  }
  if (isScheduled) {
    // Types before layouts: how a weight is packed depends on what it holds.
    pm.addPass(createFactorZeroPoints());
    pm.addPass(createNarrowIntegerProducts());
  }
  auto report = [&](StringRef stage) {
    ReportFusionOptions fusion;
    fusion.stage = stage.str();
    fusion.products = options.fusion == Fusion::Specialized;
    if (options.report)
      pm.addPass(createReportFusion(fusion));
  };
  report("before"); // merging is a kind of fusion
  if (isScheduled) {
    if (options.fusion == Fusion::Specialized) // reads the parts in place; after all that goes by a weight's name
      pm.addPass(createMergeProducts());
    ScheduleKernelsOptions schedule; // what merging joined is one product
    schedule.machine = options.machine;
    pm.addPass(createScheduleKernels(schedule));
    pm.addPass(createPackWeights());
  }
  if (options.fusion != Fusion::None) {
    // Before what follows an anchor, or precedes a norm, is gathered without it.
    FuseDeepOptions deep;
    deep.products = options.fusion == Fusion::Specialized;
    pm.addNestedPass<func::FuncOp>(createFuseDeep(deep));
    pm.addNestedPass<func::FuncOp>(createFuseRows());
    // Before elementwise ops are gathered: a region of theirs may stand between two reductions, or behind both.
    pm.addNestedPass<func::FuncOp>(createMergeReductions());
    pm.addNestedPass<func::FuncOp>(createFuseElementwise());
    pm.addNestedPass<func::FuncOp>(createFuseCopies()); // of what nothing reads in place
  }
  addCleanup(pm);
  if (options.fusion != Fusion::None)
    report("after"); // of what is left after the clean-up
  addContract(pm, Phase::Optimization);
}

void buildMemoryPipeline(OpPassManager &pm, const MemoryPipelineOptions &) {
  pm.addPass(createOutlineKernels());
  // After outlining: intervals count launches.
  pm.addPass(createPlanBuffers());
  addContract(pm, Phase::Memory);
}

template <typename Options>
static LogicalResult addPhase(OpPassManager &pm, const std::string &text,
                              void (*build)(OpPassManager &, const Options &)) {
  auto options = Options::createFromString(text);
  if (!options)
    return failure(); // the parser has said what is wrong with the text
  build(pm, *options);
  return success();
}

LogicalResult buildInferencePipeline(OpPassManager &pm, const InferencePipelineOptions &options) {
  return success(succeeded(addPhase(pm, options.graph, buildGraphPipeline)) &&
                 succeeded(addPhase(pm, options.training, buildTrainingPipeline)) &&
                 succeeded(addPhase(pm, options.distribution, buildDistributionPipeline)) &&
                 succeeded(addPhase(pm, options.optimization, buildOptimizationPipeline)) &&
                 succeeded(addPhase(pm, options.memory, buildMemoryPipeline)));
}

/// Registers the sum by hand: unlike the pipelines of phases, its builder can fail.
static void registerInferencePipeline() {
  registerPassPipeline(
      "ds-inference-pipeline", "all phases between import and code generation",
      [](OpPassManager &pm, StringRef text, function_ref<LogicalResult(const Twine &)> error) -> LogicalResult {
        auto options = InferencePipelineOptions::createFromString(text);
        if (!options || failed(buildInferencePipeline(pm, *options)))
          return error("illegal options of ds-inference-pipeline: '" + text + "'");
        return success();
      },
      [](function_ref<void(const detail::PassOptions &)> handle) { handle(InferencePipelineOptions()); });
}

void registerPipelines() {
  static PassPipelineRegistration<GraphPipelineOptions> graph(
      "ds-graph-pipeline", "fold shape arithmetic and constants, recompose transformer blocks", buildGraphPipeline);
  static PassPipelineRegistration<TrainingPipelineOptions> training(
      "ds-training-pipeline", "turn gradients into the ops that compute them", buildTrainingPipeline);
  static PassPipelineRegistration<DistributionPipelineOptions> distribution(
      "ds-distribution-pipeline", "make collectives explicit and check their order", buildDistributionPipeline);
  static PassPipelineRegistration<OptimizationPipelineOptions> optimization(
      "ds-optimization-pipeline", "fuse kernels and pack weights", buildOptimizationPipeline);
  static PassPipelineRegistration<MemoryPipelineOptions> memory(
      "ds-memory-pipeline", "outline kernels and plan buffers", buildMemoryPipeline);
  registerInferencePipeline();
}

void registerAllDeepstridePasses() {
  registerDeepstridePasses();
  registerGraphPasses();
  registerTrainingPasses();
  registerOptimizationPasses();
  registerMemoryPasses();
  registerPipelines();
}

} // namespace deepstride
