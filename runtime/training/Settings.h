// What ds_config.json says about learning rates, loss scales and dropped layers, as the runtime takes it.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_SETTINGS_H
#define DEEPSTRIDE_RUNTIME_TRAINING_SETTINGS_H

#include <cstdint>

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
