#include "runtime/training/LossScale.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cmath>

namespace ds {

// Beyond it a scaled loss could only be infinite. Gradients of zero never overflow and would double without end.
static const double largest = std::ldexp(1.0, 126);

LossScaler::LossScaler(const LossScaleSettings &settings) : settings(settings) {
  now.scale = isDynamic() ? settings.initial : settings.constant;
  now.hysteresis = settings.hysteresis;
}

void LossScaler::restore(const LossScaleState &state) {
  bool isScale = std::isfinite(state.scale) && state.scale > 0;
  if (!isScale || state.iteration < 0 || state.lastOverflow < -1 ||
      state.lastOverflow >= std::max<int64_t>(state.iteration, 1) || state.hysteresis < 1)
    fail(ErrorCode::BadFile, "loss scale: found scale ", state.scale, ", iteration ", state.iteration,
         ", last_overflow ", state.lastOverflow, ", hysteresis ", state.hysteresis,
         ", expected a positive scale, last_overflow in [-1, iteration) and hysteresis >= 1");
  now = state;
  // The file's present settings hold from here on, as far as they contradict what was saved.
  if (!isDynamic())
    now.scale = settings.constant;
  now.hysteresis = std::min(now.hysteresis, settings.hysteresis);
}

LossScaler::Outcome LossScaler::update(bool overflowed) {
  int64_t iteration = now.iteration++;
  if (!isDynamic()) {
    now.lastOverflow = overflowed ? iteration : now.lastOverflow;
    return overflowed ? Outcome::Skipped : Outcome::Good;
  }
  if (!overflowed) {
    if (settings.isConsecutive)
      now.hysteresis = settings.hysteresis;
    if ((iteration - now.lastOverflow) % settings.window == 0) {
      now.hysteresis = settings.hysteresis;
      now.scale = std::min(now.scale * 2, largest);
    }
    return Outcome::Good;
  }
  now.lastOverflow = iteration;
  if (now.hysteresis > 1) {
    --now.hysteresis;
    return Outcome::Skipped;
  }
  bool isAtMinimum = now.scale <= settings.minimum;
  now.scale = std::max(now.scale / 2, settings.minimum);
  return isAtMinimum ? Outcome::AtMinimum : Outcome::Skipped;
}

} // namespace ds
