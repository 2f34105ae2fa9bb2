// The factor that keeps small gradients from vanishing in half precision: DeepSpeed's rule.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_LOSSSCALE_H
#define DEEPSTRIDE_RUNTIME_TRAINING_LOSSSCALE_H

#include "runtime/training/LossScaleState.h"
#include "runtime/training/Settings.h"

namespace ds {

class LossScaler {
public:
  explicit LossScaler(const LossScaleSettings &settings);

  // What the next losses are multiplied by.
  double scale() const { return now.scale; }
  bool isDynamic() const { return settings.constant == 0; }

  const LossScaleState &state() const { return now; }
  // Throws Error(BadFile) where the numbers cannot be a scaler's.
  void restore(const LossScaleState &state);

  enum class Outcome : uint8_t {
    Good,
    Skipped,
    AtMinimum // skipped, and a smaller scale is not allowed: the caller stops, or goes on without hope
  };
  // After an update that was finite or, on overflow, changed nothing.
  Outcome update(bool overflowed);

private:
  LossScaleSettings settings;
  LossScaleState now;
};

} // namespace ds
#endif
