// What ds_config.json says about learning rates, loss scales and dropped layers, as the runtime takes it.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_SETTINGS_H
#define DEEPSTRIDE_RUNTIME_TRAINING_SETTINGS_H

#include <cstdint>
#include <string>

namespace ds {

enum class ScheduleKind : uint8_t { Constant, LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR, WarmupCosineLR };

// The names are DeepSpeed's; a kind reads those that it has.
struct ScheduleSettings {
  ScheduleKind kind = ScheduleKind::Constant;
  double lr = 1e-3, momentum = 0.9; // the optimizer's own

  double warmupMinLr = 0, warmupMaxLr = 1e-3, warmupMinRatio = 0, cosMinRatio = 1e-4;
  int64_t warmupNumSteps = 1000, totalNumSteps = 1;
  bool isWarmupLinear = false; // otherwise logarithmic

  double rangeMinLr = 1e-3, rangeStepRate = 1;
  int64_t rangeStepSize = 2000;
  bool isRangeStaircase = false;

  double cycleMinLr = 0, cycleMaxLr = 0, decayLrRate = 0;
  int64_t cycleFirstStepSize = 2000, cycleSecondStepSize = 2000;
  int64_t cycleFirstStairCount = 0, cycleSecondStairCount = 0; // 0: a slope
  int64_t decayStepSize = 0;                                   // 0: no decay
  bool cyclesMomentum = true;
  double cycleMinMom = 0.8, cycleMaxMom = 0.9, decayMomRate = 0;
};

// Power iteration for the greatest eigenvalue of the Hessian of each layer.
struct EigenvalueSettings {
  bool isEnabled = false, isVerbose = false;
  int64_t maxIterations = 100;
  double tolerance = 1e-2, stability = 1e-6;
  int64_t resolution = 1; // steps of which the last one may compute them
  std::string layerName = "bert.encoder.layer";
  int64_t layers = 0;
};

// Mixture of quantization: widths fall from the first to the last.
struct QuantizationSettings {
  bool isEnabled = false;
  int64_t groups = 1;
  int64_t startBits = 16, targetBits = 8;
  int64_t period = 1000; // updates before the first bit is dropped; doubles at each drop
  int64_t offset = 1000; // updates before anything is rounded
  bool isSymmetric = true, isStochastic = false;
  bool isMixed = false;
  double changeRatio = 0.001; // what the share of the weights themselves loses with each update
  bool isVerbose = false;
  EigenvalueSettings eigenvalue;
};

struct LossScaleSettings {
  double constant = 1; // 0: dynamic
  double initial = 65536, minimum = 1;
  int64_t window = 1000, hysteresis = 2;
  bool isConsecutive = false; // every good step restores hysteresis
};

// Progressive layer dropping, of a package whose blocks have gates.
struct LayerDropSettings {
  double theta = 0.5, gamma = 1e-3; // theta: the limit that it falls to
  bool isPaper = false;             // depth counts from 1, so that every block may be dropped; else from 0
};

} // namespace ds
#endif
