// Learning rate and momentum of each step: DeepSpeed's five schedules. The number of the step is all their state.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_SCHEDULES_H
#define DEEPSTRIDE_RUNTIME_TRAINING_SCHEDULES_H

#include "runtime/training/Settings.h"

namespace ds {

struct Rates {
  double lr = 0, momentum = 0; // momentum: Adam's beta1, SGD's momentum
};

class Schedule {
public:
  explicit Schedule(const ScheduleSettings &settings) : settings(settings) {}

  // What a step uses when `step` steps came before it that were not skipped. DeepSpeed's schedulers count from the end
  // of the first step: their iteration is step - 1, and step 0 uses what they begin with.
  Rates at(int64_t step) const;

private:
  double warmup(int64_t iteration) const; // from 0 to 1 and above
  Rates cycle(int64_t iteration) const;

  ScheduleSettings settings;
};

} // namespace ds
#endif
