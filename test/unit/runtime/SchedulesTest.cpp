// DeepSpeed's schedules by the values that they are known to give; the first of a row is the scheduler's iteration.
#include "runtime/training/Schedules.h"

#include <gtest/gtest.h>
#include <vector>

using namespace ds;

namespace {
struct Row {
  int64_t iteration;
  double lr, momentum = -1;
};

void expectRows(const ScheduleSettings &settings, const std::vector<Row> &rows, double tolerance = 5e-4) {
  Schedule schedule(settings);
  for (const Row &row : rows) {
    Rates rates = schedule.at(row.iteration + 1);
    EXPECT_NEAR(rates.lr, row.lr, row.lr * tolerance) << "iteration " << row.iteration;
    if (row.momentum >= 0)
      EXPECT_NEAR(rates.momentum, row.momentum, 1e-9) << "iteration " << row.iteration;
  }
}

ScheduleSettings of(ScheduleKind kind) {
  ScheduleSettings settings;
  settings.kind = kind;
  return settings;
}

ScheduleSettings cycle() {
  ScheduleSettings s = of(ScheduleKind::OneCycle);
  s.cycleMinLr = 1e-4;
  s.cycleMaxLr = 1e-3;
  s.cycleFirstStepSize = s.cycleSecondStepSize = 1000;
  s.decayLrRate = 1e-3;
  s.decayStepSize = 1000;
  s.cycleMinMom = 0.85;
  s.cycleMaxMom = 0.99;
  return s;
}
} // namespace

TEST(Schedules, ConstantIsTheOptimizers) {
  ScheduleSettings settings;
  settings.lr = 0.3;
  settings.momentum = 0.7;
  expectRows(settings, {{-1, 0.3, 0.7}, {12345, 0.3, 0.7}});
}

TEST(Schedules, WarmupIsLogarithmic) {
  ScheduleSettings s = of(ScheduleKind::WarmupLR);
  expectRows(
      s,
      {{-1, 0}, {0, 0}, {1, 1.0034e-4}, {9, 3.3333e-4}, {99, 6.6667e-4}, {499, 8.9966e-4}, {999, 1e-3}, {5000, 1e-3}});
  s.warmupMinLr = 2e-4;
  expectRows(s, {{-1, 2e-4}, {0, 2e-4}, {99, 7.3333e-4}});
  for (int64_t steps : {0, 1, 2}) { // one step has no logarithm to divide by
    s.warmupNumSteps = steps;
    expectRows(s, {{0, 2e-4}, {1, 1e-3}, {2, 1e-3}}, 1e-12);
  }
}

TEST(Schedules, WarmupIsLinearWhereAsked) {
  ScheduleSettings s = of(ScheduleKind::WarmupLR);
  s.isWarmupLinear = true;
  expectRows(s, {{-1, 0}, {0, 0}, {250, 2.5e-4}, {999, 9.99e-4}, {1000, 1e-3}}, 1e-12);
}

TEST(Schedules, WarmupDecayFallsToNothing) {
  ScheduleSettings s = of(ScheduleKind::WarmupDecayLR);
  s.totalNumSteps = 3000;
  expectRows(s, {{-1, 0}, {9, 3.3333e-4}, {999, 1e-3}, {1000, 1e-3}, {2000, 5e-4}, {3000, 0}, {4000, 0}});
  s.totalNumSteps = 10; // ends before the warm-up does
  expectRows(s, {{9, 3.3333e-4}, {1000, 0}});
}

TEST(Schedules, WarmupCosineEndsAtItsMinimum) {
  ScheduleSettings s = of(ScheduleKind::WarmupCosineLR);
  s.lr = 0.1;
  s.warmupMinRatio = 0.5;
  s.warmupNumSteps = 10;
  s.totalNumSteps = 110;
  s.isWarmupLinear = true;
  expectRows(s, {{-1, 0.05}, {0, 0.05}, {5, 0.075}, {59, 0.1 * (1e-4 + (1 - 1e-4) / 2)}, {109, 1e-5}, {150, 1e-5}},
             1e-9);
}

TEST(Schedules, RangeTestGrows) {
  ScheduleSettings s = of(ScheduleKind::LRRangeTest);
  s.rangeMinLr = 1e-4;
  s.rangeStepSize = 200;
  s.rangeStepRate = 5;
  expectRows(s, {{-1, 1e-4}, {0, 1.025e-4}, {199, 6e-4}, {399, 1.1e-3}}, 1e-12);
  s.isRangeStaircase = true;
  expectRows(s, {{-1, 1e-4}, {0, 1e-4}, {198, 1e-4}, {199, 6e-4}, {399, 1.1e-3}}, 1e-12);
}

TEST(Schedules, OneCycleIsATriangle) {
  expectRows(cycle(), {{-1, 1e-4, 0.99},
                       {0, 1.009e-4, 0.98986},
                       {499, 5.5e-4, 0.92},
                       {999, 1e-3, 0.85},
                       {1999, 1e-4, 0.99},
                       {2999, 9.990e-5, 0.99}});
  ScheduleSettings s = cycle();
  s.cyclesMomentum = false;
  s.momentum = 0.5;
  expectRows(s, {{499, 5.5e-4, 0.5}});
}

TEST(Schedules, OneCycleDecays) {
  ScheduleSettings s = cycle();
  s.decayMomRate = 1e-3;
  expectRows(s, {{2999, 9.990e-5, 0.99 * 1.001}});
  s.decayStepSize = 0;
  expectRows(s, {{2999, 1e-4, 0.99}, {1999999, 1e-4, 0.99}});
  s.decayStepSize = 1;
  EXPECT_LT(Schedule(s).at(1'000'000'000).momentum, 1);
}

TEST(Schedules, OneCycleClimbsStairs) {
  ScheduleSettings s = cycle();
  s.cycleFirstStairCount = 2;
  s.cycleSecondStairCount = 4;
  expectRows(s,
             {{-1, 1e-4, 0.99},
              {498, 1e-4, 0.99},
              {499, 5.5e-4, 0.92},
              {998, 5.5e-4, 0.92},
              {999, 1e-3, 0.85},
              {1248, 1e-3, 0.85},
              {1249, 7.75e-4, 0.885},
              {1999, 1e-4, 0.99}},
             1e-12);
}
