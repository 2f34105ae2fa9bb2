// What of a loss scaler a checkpoint keeps, under the names scale, iteration, last_overflow and hysteresis.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_LOSSSCALESTATE_H
#define DEEPSTRIDE_RUNTIME_TRAINING_LOSSSCALESTATE_H

#include <cstdint>

namespace ds {

struct LossScaleState {
  double scale = 1;
  int64_t iteration = 0;     // updates so far, skipped ones included
  int64_t lastOverflow = -1; // iteration of the last skipped one
  int64_t hysteresis = 1;    // overflows until the scale is halved

  bool operator==(const LossScaleState &other) const {
    return scale == other.scale && iteration == other.iteration && lastOverflow == other.lastOverflow &&
           hysteresis == other.hysteresis;
  }
};

} // namespace ds
#endif
