#include "runtime/training/LossScale.h"
#include "runtime/core/Error.h"

#include <gtest/gtest.h>
#include <vector>

using namespace ds;
using Outcome = LossScaler::Outcome;

namespace {
LossScaleSettings dynamic(double initial, int64_t window, int64_t hysteresis) {
  LossScaleSettings settings;
  settings.constant = 0;
  settings.initial = initial;
  settings.window = window;
  settings.hysteresis = hysteresis;
  return settings;
}
} // namespace

TEST(LossScale, FollowsDeepSpeed) {
  LossScaler scaler(dynamic(65536, 5, 2));
  const bool overflows[] = {true, true, true, false, false, false, false, false, false, true, false};
  const double scales[] = {65536, 32768, 16384, 16384, 16384, 16384, 16384, 32768, 32768, 32768, 32768};
  const int64_t hysteresis[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 1, 1};
  for (size_t i = 0; i < 11; ++i) {
    EXPECT_EQ(scaler.update(overflows[i]), overflows[i] ? Outcome::Skipped : Outcome::Good) << i;
    EXPECT_EQ(scaler.scale(), scales[i]) << i;
    EXPECT_EQ(scaler.state().hysteresis, hysteresis[i]) << i;
  }
  EXPECT_EQ(scaler.state().iteration, 11);
  EXPECT_EQ(scaler.state().lastOverflow, 9);
}

TEST(LossScale, ReportsAnOverflowAtTheMinimum) {
  LossScaleSettings settings = dynamic(4, 1000, 1);
  settings.minimum = 1.5;
  LossScaler scaler(settings);
  EXPECT_EQ(scaler.update(true), Outcome::Skipped);
  EXPECT_EQ(scaler.scale(), 2);
  EXPECT_EQ(scaler.update(true), Outcome::Skipped);
  EXPECT_EQ(scaler.scale(), 1.5);
  EXPECT_EQ(scaler.update(true), Outcome::AtMinimum);
  EXPECT_EQ(scaler.scale(), 1.5);
}

TEST(LossScale, RestoresHysteresisWhereAsked) {
  LossScaleSettings settings = dynamic(4, 1000, 2);
  settings.isConsecutive = true;
  LossScaler scaler(settings);
  for (int i = 0; i < 3; ++i) {
    scaler.update(true);
    scaler.update(false);
    EXPECT_EQ(scaler.scale(), 4);
  }
}

TEST(LossScale, StaysFiniteWithoutOverflow) {
  LossScaler scaler(dynamic(65536, 1, 1));
  for (int i = 0; i < 3000; ++i)
    scaler.update(false);
  EXPECT_LT(scaler.scale(), 1e38);
}

TEST(LossScale, StaticOnesSkipAndStay) {
  LossScaleSettings settings;
  settings.constant = 128;
  LossScaler scaler(settings);
  EXPECT_EQ(scaler.update(true), Outcome::Skipped);
  EXPECT_EQ(scaler.update(false), Outcome::Good);
  EXPECT_EQ(scaler.scale(), 128);
}

TEST(LossScale, GoesOnFromAState) {
  LossScaler one(dynamic(65536, 3, 2)), other(dynamic(65536, 3, 2));
  const bool overflows[] = {true, false, true, true, false, false, false, true, false};
  for (size_t i = 0; i < 9; ++i) {
    one.update(overflows[i]);
    if (i == 3)
      other.restore(one.state());
    else if (i > 3)
      other.update(overflows[i]);
  }
  EXPECT_EQ(one.scale(), other.scale());
  EXPECT_EQ(one.state().hysteresis, other.state().hysteresis);
  EXPECT_THROW(other.restore({0, 1, 0, 1}), Error);
  EXPECT_THROW(other.restore({2, 1, 1, 1}), Error);
  EXPECT_THROW(other.restore({2, 1, 0, 0}), Error);
}
