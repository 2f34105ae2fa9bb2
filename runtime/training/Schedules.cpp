#include "runtime/training/Schedules.h"

#include <algorithm>
#include <cmath>

namespace ds {

// Shares of the way from 0 to 1 in so many stairs; 0 is a slope. Exact at the stairs: quotients of integers are.
static double climbed(double steps, double of, int64_t stairs) {
  return stairs == 0 ? steps / of : std::floor(steps * static_cast<double>(stairs) / of) / static_cast<double>(stairs);
}

double Schedule::warmup(int64_t iteration) const {
  // DeepSpeed warms up over two steps at least: the logarithm of one is 0.
  auto steps = static_cast<double>(std::max<int64_t>(settings.warmupNumSteps, 2));
  auto done = static_cast<double>(std::max<int64_t>(iteration, 0));
  if (done >= steps)
    return 1;
  return settings.isWarmupLinear ? done / steps : std::log(done + 1) / std::log(steps);
}

Rates Schedule::cycle(int64_t iteration) const {
  const ScheduleSettings &s = settings;
  double done = static_cast<double>(iteration) + 1;
  auto first = static_cast<double>(s.cycleFirstStepSize), second = static_cast<double>(s.cycleSecondStepSize);
  double lr = s.cycleMinLr, momentum = s.cycleMaxMom;
  if (done <= first + second) {
    double height = done <= first ? climbed(done, first, s.cycleFirstStairCount)
                                  : 1 - climbed(done - first, second, s.cycleSecondStairCount);
    lr += (s.cycleMaxLr - s.cycleMinLr) * height;
    momentum -= (s.cycleMaxMom - s.cycleMinMom) * height;
  } else if (s.decayStepSize > 0) {
    double intervals = (done - first - second) / static_cast<double>(s.decayStepSize);
    lr /= 1 + s.decayLrRate * intervals;
    // Without end it would grow to 1 and beyond, where averages no longer forget.
    momentum = std::min(momentum * (1 + s.decayMomRate * intervals), std::max(momentum, 0.9999));
  }
  return {lr, s.cyclesMomentum ? momentum : s.momentum};
}

Rates Schedule::at(int64_t step) const {
  const ScheduleSettings &s = settings;
  int64_t iteration = step - 1;
  double base = s.warmupMinLr, peak = s.warmupMaxLr;
  auto steps = static_cast<double>(std::max<int64_t>(s.warmupNumSteps, 2));
  auto total = static_cast<double>(s.totalNumSteps), done = static_cast<double>(iteration);
  switch (s.kind) {
  case ScheduleKind::Constant: break;
  case ScheduleKind::OneCycle: return cycle(iteration);
  case ScheduleKind::LRRangeTest: {
    double intervals = (done + 1) / static_cast<double>(s.rangeStepSize);
    return {s.rangeMinLr * (1 + s.rangeStepRate * (s.isRangeStaircase ? std::floor(intervals) : intervals)),
            s.momentum};
  }
  case ScheduleKind::WarmupLR: return {base + (peak - base) * warmup(iteration), s.momentum};
  case ScheduleKind::WarmupDecayLR:
    if (done < steps)
      return {base + (peak - base) * warmup(iteration), s.momentum};
    // DeepSpeed's formula: the rate of the minimum does not enter.
    return {base + (peak - base) * std::max(0.0, (total - done) / std::max(1.0, total - steps)), s.momentum};
  case ScheduleKind::WarmupCosineLR: {
    double share = s.warmupMinRatio + (1 - s.warmupMinRatio) * warmup(iteration);
    if (done >= steps) {
      // Past its end the cosine would rise again.
      double way = std::min(1.0, (done - steps + 1) / std::max(1.0, total - steps));
      share = s.cosMinRatio + (1 - s.cosMinRatio) * (1 + std::cos(std::acos(-1.0) * way)) / 2;
    }
    return {s.lr * share, s.momentum};
  }
  }
  return {s.lr, s.momentum};
}

} // namespace ds
