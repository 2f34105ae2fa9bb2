// One pipeline per phase and their sum. Options are structs that also parse from pipeline text, so that a program, a
// command line and a golden test run exactly the same passes. Import is a frontend's and codegen the code generator's;
// the phases between are here.
#ifndef DEEPSTRIDE_PASSES_PIPELINES_H
#define DEEPSTRIDE_PASSES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "passes/Phases.h"

namespace deepstride {

struct GraphPipelineOptions : mlir::PassPipelineOptions<GraphPipelineOptions> {
  ListOption<std::string> dims{*this, "dims", llvm::cl::desc("sizes to pin, as name=value")};
  Option<bool> promote{*this, "promote", llvm::cl::desc("make states of the weights that a model learns"),
                       llvm::cl::init(false)};
  Option<std::string> head{*this, "head", llvm::cl::desc("with promote: the output of ds-add-head; empty: none")};
  Option<int64_t> classes{*this, "classes", llvm::cl::desc("as of ds-add-head"), llvm::cl::init(0)};
  Option<uint64_t> seed{*this, "seed", llvm::cl::desc("as of ds-add-head"), llvm::cl::init(0)};
  Option<bool> tie{*this, "tie", llvm::cl::desc("with promote: weights that are stored twice are one parameter"),
                   llvm::cl::init(true)};
  Option<bool> places{*this, "places", llvm::cl::desc("with promote: weights in files are not read to find such ones"),
                      llvm::cl::init(false)};
  Option<std::string> train{*this, "train", llvm::cl::desc("as of ds-promote-parameters")};
  Option<std::string> freeze{*this, "freeze", llvm::cl::desc("as of ds-promote-parameters")};
  Option<bool> recompose{*this, "recompose", llvm::cl::desc("recover norms, GELU, softmax and attention from chains"),
                         llvm::cl::init(true)};
  Option<bool> linear{*this, "linear", llvm::cl::desc("find products with parameters even where nothing is recovered"),
                      llvm::cl::init(false)};
  Option<bool> widen{*this, "widen", llvm::cl::desc("compute in f64 what the model computes in narrower floats"),
                     llvm::cl::init(false)};
};

struct TrainingPipelineOptions : mlir::PassPipelineOptions<TrainingPipelineOptions> {
  Option<std::string> loss{*this, "loss",
                           llvm::cl::desc("as of ds-build-training-step; empty: the model is not trained")};
  Option<std::string> logits{*this, "logits", llvm::cl::desc("as of ds-build-training-step")};
  Option<std::string> labels{*this, "labels", llvm::cl::desc("as of ds-build-training-step")};
  Option<bool> shiftLabels{*this, "shift-labels", llvm::cl::desc("as of ds-build-training-step"),
                           llvm::cl::init(false)};
  Option<int64_t> ignoreIndex{*this, "ignore-index", llvm::cl::desc("as of ds-build-training-step"),
                              llvm::cl::init(-100)};
  Option<bool> gates{*this, "gates", llvm::cl::desc("run ds-gate-layers before"), llvm::cl::init(false)};
  Option<bool> accumulates{*this, "accumulates", llvm::cl::desc("as of ds-build-training-step"), llvm::cl::init(true)};
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::desc("as of ds-build-training-step"),
                                llvm::cl::init("adamw")};
  Option<double> clip{*this, "clip", llvm::cl::desc("as of ds-build-training-step"), llvm::cl::init(0)};
  Option<std::string> noDecay{*this, "no-decay", llvm::cl::desc("as of ds-build-training-step")};
  Option<int64_t> quantizeGroups{*this, "quantize-groups", llvm::cl::init(0),
                                 llvm::cl::desc("groups of ds-schedule-quantization; 0: weights stay as they are")};
  Option<std::string> quantizeScheme{*this, "quantize-scheme", llvm::cl::desc("as of ds-schedule-quantization"),
                                     llvm::cl::init("symmetric")};
  Option<std::string> quantizeRounding{*this, "quantize-rounding", llvm::cl::desc("as of ds-schedule-quantization"),
                                       llvm::cl::init("nearest")};
  Option<std::string> layerName{*this, "layer-name", llvm::cl::desc("as of ds-schedule-quantization")};
  Option<int64_t> layers{*this, "layers", llvm::cl::desc("as of ds-schedule-quantization"), llvm::cl::init(0)};
  Option<double> stability{*this, "stability", llvm::cl::desc("as of ds-build-training-step"), llvm::cl::init(1e-6)};
  Option<int64_t> shareStage{*this, "share-stage", llvm::cl::desc("as of ds-build-training-step"), llvm::cl::init(0)};
  Option<int64_t> reduceBucket{*this, "reduce-bucket", llvm::cl::desc("as of ds-build-training-step"),
                               llvm::cl::init(int64_t(1) << 53)};
  Option<int64_t> gatherBucket{*this, "gather-bucket", llvm::cl::desc("as of ds-build-training-step"),
                               llvm::cl::init(int64_t(1) << 53)};
  Option<bool> overlaps{*this, "overlaps", llvm::cl::desc("as of ds-build-training-step"), llvm::cl::init(true)};
  Option<bool> sparseTables{*this, "sparse-tables", llvm::cl::desc("as of ds-build-training-step"),
                            llvm::cl::init(false)};
  Option<std::string> wire{*this, "wire", llvm::cl::desc("as of ds-build-training-step")};
  Option<std::string> gradientsIn{*this, "gradients-in", llvm::cl::desc("as of ds-build-training-step")};
  Option<std::string> rounds{*this, "rounds", llvm::cl::desc("as of ds-build-training-step")};
  Option<int64_t> prefetch{*this, "prefetch", llvm::cl::desc("as of ds-build-training-step"),
                           llvm::cl::init(int64_t(1) << 53)};
  Option<int64_t> maxLive{*this, "max-live", llvm::cl::desc("as of ds-build-training-step"),
                          llvm::cl::init(int64_t(1) << 53)};
  Option<int64_t> maxReuse{*this, "max-reuse", llvm::cl::desc("as of ds-build-training-step"), llvm::cl::init(0)};
  Option<int64_t> persistence{*this, "persistence", llvm::cl::desc("as of ds-build-training-step"), llvm::cl::init(0)};
  Option<int64_t> modelPersistence{*this, "model-persistence", llvm::cl::desc("as of ds-build-training-step"),
                                   llvm::cl::init(int64_t(1) << 53)};
  Option<bool> quantizeMixed{*this, "quantize-mixed", llvm::cl::desc("as of ds-schedule-quantization"),
                             llvm::cl::init(false)};
};

struct DistributionPipelineOptions : mlir::PassPipelineOptions<DistributionPipelineOptions> {};

struct OptimizationPipelineOptions : mlir::PassPipelineOptions<OptimizationPipelineOptions> {
  Option<Fusion> fusion{*this, "fusion", llvm::cl::desc("which ops share a kernel"),
                        llvm::cl::init(Fusion::Specialized),
                        llvm::cl::values(clEnumValN(Fusion::None, "none", "none"),
                                         clEnumValN(Fusion::Generic, "generic", "elementwise ops, around products"),
                                         clEnumValN(Fusion::Specialized, "specialized", "and products with them"))};
  Option<std::string> machine{*this, "machine",
                              llvm::cl::desc("as of ds-schedule-kernels; none leaves products plain loops"),
                              llvm::cl::init("512")};
  Option<int64_t> quantize{*this, "quantize", llvm::cl::desc("bits of quantized weights; 0 leaves them as they are"),
                           llvm::cl::init(0)};
  Option<int64_t> group{*this, "group", llvm::cl::desc("as of ds-quantize-weights"), llvm::cl::init(0)};
  Option<std::string> scheme{*this, "scheme", llvm::cl::desc("as of ds-quantize-weights"), llvm::cl::init("symmetric")};
  Option<bool> mixed{*this, "mixed", llvm::cl::desc("as of ds-quantize-weights"), llvm::cl::init(false)};
  Option<bool> observe{*this, "observe", llvm::cl::desc("run ds-observe-products in the place of quantization"),
                       llvm::cl::init(false)};
  Option<int64_t> first{*this, "first", llvm::cl::desc("as of ds-observe-products"), llvm::cl::init(0)};
  Option<bool> trains{*this, "trains", llvm::cl::desc("round what is computed while the program runs, too"),
                      llvm::cl::init(false)};
  Option<std::string> round{*this, "round", llvm::cl::desc("what products multiply in: bf16, f16; empty: f32")};
  Option<bool> activations{*this, "activations", llvm::cl::desc("multiply quantized weights by rows in 8 bits"),
                           llvm::cl::init(false)};
  Option<std::string> keep{*this, "keep", llvm::cl::desc("as of ds-quantize-weights")};
  Option<bool> report{*this, "report", llvm::cl::desc("run ds-report-fusion before and after fusion"),
                      llvm::cl::init(false)};
};

struct MemoryPipelineOptions : mlir::PassPipelineOptions<MemoryPipelineOptions> {};

/// Options of the whole: one text per phase, in the syntax of that phase's own pipeline.
struct InferencePipelineOptions : mlir::PassPipelineOptions<InferencePipelineOptions> {
  Option<std::string> graph{*this, "graph", llvm::cl::desc("options of ds-graph-pipeline")};
  Option<std::string> training{*this, "training", llvm::cl::desc("options of ds-training-pipeline")};
  Option<std::string> distribution{*this, "distribution", llvm::cl::desc("options of ds-distribution-pipeline")};
  Option<std::string> optimization{*this, "optimization", llvm::cl::desc("options of ds-optimization-pipeline")};
  Option<std::string> memory{*this, "memory", llvm::cl::desc("options of ds-memory-pipeline")};
};

void buildGraphPipeline(mlir::OpPassManager &pm, const GraphPipelineOptions &options);
void buildTrainingPipeline(mlir::OpPassManager &pm, const TrainingPipelineOptions &options);
void buildDistributionPipeline(mlir::OpPassManager &pm, const DistributionPipelineOptions &options);
void buildOptimizationPipeline(mlir::OpPassManager &pm, const OptimizationPipelineOptions &options);
void buildMemoryPipeline(mlir::OpPassManager &pm, const MemoryPipelineOptions &options);
/// Fails where the text of a phase's options does not parse.
llvm::LogicalResult buildInferencePipeline(mlir::OpPassManager &pm, const InferencePipelineOptions &options);

/// Canonicalization and common subexpressions, at phase ends only.
void addCleanup(mlir::OpPassManager &pm);
/// The check at a phase's end.
void addContract(mlir::OpPassManager &pm, Phase phase);

void registerPipelines();

} // namespace deepstride

#endif
