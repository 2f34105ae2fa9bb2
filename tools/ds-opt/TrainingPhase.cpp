#include "tools/ds-opt/TrainingPhase.h"

namespace deepstride {

static std::string floatOf(const std::string &type) { return type == "fp16" ? "f16" : type == "fp32" ? "f32" : type; }

static void setSharing(TrainingPipelineOptions &training, const ::ds::config::ZeroSettings &zero) {
  training.shareStage = zero.stage;
  training.reduceBucket = zero.reduceBucket;
  training.gatherBucket = zero.gatherBucket;
  training.overlaps = zero.overlaps;
  training.sparseTables = zero.hasSparseGradients;
  training.wire = floatOf(zero.wireType);
  training.gradientsIn = zero.gradientType == "fp32" ? "" : floatOf(zero.gradientType); // a reference's stay wider
  training.prefetch = zero.prefetchBucket;
  training.maxLive = zero.maxLive;
  training.maxReuse = zero.maxReuse;
  training.persistence = zero.persistence;
  training.modelPersistence = zero.modelPersistence;
}

static void setQuantization(TrainingPipelineOptions &training, const ::ds::QuantizationSettings &quantization) {
  if (!quantization.isEnabled)
    return;
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

void setTrainingOptions(TrainingPipelineOptions &training, const DriverOptions &options) {
  training.loss = options.training.loss;
  training.logits = options.training.logits;
  training.labels = options.training.labels;
  training.shiftLabels = options.training.shiftsLabels;
  training.ignoreIndex = options.training.ignoredLabel.value_or(-100);
  training.noDecay = options.training.noDecay;
  const auto &config = options.training.resolved;
  if (!config)
    return;
  training.optimizer = ::ds::config::optimizerText(config->optimizer);
  training.clip = config->gradientClipping;
  training.gates = config->dropsLayers;
  setSharing(training, config->zero);
  if (!config->quantization.isEnabled) // whose widths are of f32
    training.rounds = options.rounds;
  if (config->optimizer.compresses) // every rank updates all parameters from the same bits
    training.shareStage = 0;
  setQuantization(training, config->quantization);
}

} // namespace deepstride
