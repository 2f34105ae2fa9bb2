// Widths by update, as DeepSpeed's rule is known to give them, and by its closed form.
#include "runtime/training/BitSchedule.h"
#include "runtime/core/Error.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

using namespace ds;

namespace {
QuantizationSettings of(int64_t start, int64_t target, int64_t period, int64_t offset) {
  QuantizationSettings settings;
  settings.isEnabled = true;
  settings.startBits = start;
  settings.targetBits = target;
  settings.period = period;
  settings.offset = offset;
  return settings;
}

// The updates after which the width of the first block is another one.
std::vector<int64_t> drops(BitSchedule &schedule, int64_t updates) {
  std::vector<int64_t> found;
  for (int64_t t = 1; t <= updates; ++t) {
    int64_t before = schedule.bits(0);
    bool isExpected = schedule.isAboutToDrop();
    schedule.advance();
    bool drops = before != 0 && schedule.bits(0) != before;
    EXPECT_EQ(drops, isExpected) << "update " << t;
    if (drops)
      found.push_back(t);
  }
  return found;
}
} // namespace

TEST(BitSchedule, DropsABitWhenThePeriodsAreOver) {
  BitSchedule schedule(of(16, 8, 400, 0), 1);
  EXPECT_EQ(schedule.updatesToTarget(), 51200);
  EXPECT_EQ(drops(schedule, 60000), (std::vector<int64_t>{400, 800, 1600, 3200, 6400, 12800, 25600, 51200}));
  EXPECT_EQ(schedule.bits(0), 8);
  EXPECT_TRUE(schedule.isAtTarget());
}

TEST(BitSchedule, CountsFromTheOffset) {
  BitSchedule schedule(of(16, 8, 100, 100), 1);
  EXPECT_EQ(schedule.updatesToTarget(), 12900);
  EXPECT_EQ(drops(schedule, 13000), (std::vector<int64_t>{200, 300, 500, 900, 1700, 3300, 6500, 12900}));
}

TEST(BitSchedule, RoundsNothingBeforeTheOffset) {
  for (int64_t offset : {0, 1, 2, 7}) {
    BitSchedule schedule(of(8, 4, 3, offset), 1);
    for (int64_t t = 0; t < 12; ++t, schedule.advance()) {
      bool begins = t >= std::max<int64_t>(offset, 1);
      EXPECT_EQ(schedule.hasBegun(), begins) << offset << ", update " << t;
      EXPECT_EQ(schedule.levels(0) > 0, begins);
    }
  }
}

TEST(BitSchedule, IsTheClosedForm) {
  for (int64_t start : {16, 12, 5, 3})
    for (int64_t target : {8, 3, 1})
      for (int64_t period : {1, 2, 3, 10, 37})
        for (int64_t offset : {0, 1, 5, 60}) {
          if (target > start)
            continue;
          BitSchedule schedule(of(start, target, period, offset), 1);
          int64_t needed = schedule.updatesToTarget();
          for (int64_t t = 1; t <= 3000; ++t) {
            schedule.advance();
            int64_t q = t - offset, expected = t < offset ? 0 : start;
            if (q >= period) {
              double ratio = static_cast<double>(q) / static_cast<double>(period);
              expected = std::max(target, start - 1 - static_cast<int64_t>(std::floor(std::log2(ratio))));
            }
            ASSERT_EQ(schedule.bits(0), expected)
                << start << " to " << target << ", " << period << ", " << offset << ", " << t;
            ASSERT_EQ(schedule.levels(0), expected ? std::ldexp(1.0, static_cast<int>(expected)) : 0);
            ASSERT_EQ(schedule.isAtTarget(), t >= needed) << t;
            ASSERT_EQ(schedule.updatesToTarget(), std::max<int64_t>(needed - t, 0)) << t;
          }
        }
}

TEST(BitSchedule, MixesAnewAfterEachDrop) {
  QuantizationSettings settings = of(6, 4, 10, 2);
  settings.isMixed = true;
  settings.changeRatio = 0.25;
  BitSchedule schedule(settings, 1);
  EXPECT_EQ(schedule.updatesToTarget(), 22 + 4);
  std::vector<double> expected = {0,   0,    1, 0.75, 0.5, 0.25, 0, 0, 0, 0,    0,   0,    1, 0.75,
                                  0.5, 0.25, 0, 0,    0,   0,    0, 0, 1, 0.75, 0.5, 0.25, 0, 0};
  for (size_t t = 0; t < expected.size(); ++t, schedule.advance()) {
    EXPECT_EQ(schedule.share(0), expected[t]) << t;
    EXPECT_EQ(schedule.isAtTarget(), t >= 26) << t;
  }
}

TEST(BitSchedule, FallsToNothingByAnyRatio) {
  for (double ratio : {0.1, 0.3, 1.0 / 3, 0.001, 1.0, 0.7}) {
    QuantizationSettings settings = of(8, 8, 10, 0);
    settings.isMixed = true;
    settings.changeRatio = ratio;
    BitSchedule schedule(settings, 1);
    int64_t needed = schedule.updatesToTarget();
    for (int64_t t = 0; t < needed; ++t) {
      EXPECT_TRUE(t == 0 || schedule.share(0) > 0) << ratio << ", " << t;
      schedule.advance();
    }
    EXPECT_EQ(schedule.share(0), 0) << ratio;
  }
}

TEST(BitSchedule, StretchesPeriodsByFactors) {
  // Periods of the first block: 10, 100, 1000; of the second: 10, 20, 40.
  BitSchedule again(of(16, 13, 10, 0), 2);
  EXPECT_EQ(again.updatesToTarget(), 40);
  EXPECT_EQ(again.updatesToTarget(5), 1000);
  again.setFactors({5, 1});
  std::vector<int64_t> first, second;
  for (int64_t t = 1; t <= 2000; ++t) {
    int64_t one = again.bits(0), other = again.bits(1);
    again.advance();
    if (one && again.bits(0) != one)
      first.push_back(t);
    if (other && again.bits(1) != other)
      second.push_back(t);
  }
  EXPECT_EQ(first, (std::vector<int64_t>{10, 100, 1000}));
  EXPECT_EQ(second, (std::vector<int64_t>{10, 20, 40}));
}

TEST(BitSchedule, NeverOverflows) {
  BitSchedule schedule(of(24, 1, 2147483647, 2147483647), 1);
  EXPECT_EQ(schedule.updatesToTarget(), 2147483647 + 2147483647 * (int64_t(1) << 22));
  QuantizationSettings settings = of(8, 8, 1, 0);
  settings.isMixed = true;
  settings.changeRatio = 1e-300; // as a configuration may say: never, in effect
  BitSchedule mixed(settings, 1);
  EXPECT_GE(mixed.updatesToTarget(), int64_t(1) << 60);
  EXPECT_FALSE(mixed.isAtTarget());
}

TEST(BitSchedule, GoesOnFromItsState) {
  QuantizationSettings settings = of(7, 3, 4, 3);
  settings.isMixed = true;
  settings.changeRatio = 0.1;
  BitSchedule whole(settings, 2);
  whole.setFactors({1, 2});
  for (int64_t t = 0; t < 60; ++t) {
    BitSchedule parts(settings, 2);
    parts.restore(whole.state());
    EXPECT_EQ(parts.state(), whole.state());
    EXPECT_EQ(parts.updatesToTarget(), whole.updatesToTarget());
    whole.advance();
    parts.advance();
    EXPECT_EQ(parts.state(), whole.state()) << t;
    EXPECT_EQ(parts.share(1), whole.share(1));
  }
}

// As for who evaluates: the numbers of a state replace those that a package was compiled with.
TEST(BitSchedule, TakesTheNumbersOfAState) {
  BitSchedule schedule(of(7, 3, 4, 3), 1), other(of(16, 8, 1000, 1000), 1);
  EXPECT_EQ(schedule.difference(schedule), "");
  EXPECT_EQ(other.difference(schedule), "start_bits: found 16, expected 7");
  for (int64_t t = 0; t < 9; ++t)
    schedule.advance();
  other.restore(schedule.state());
  EXPECT_EQ(other.difference(schedule), "");
  EXPECT_EQ(other.bits(0), 6);
  EXPECT_EQ(other.updatesToTarget(), schedule.updatesToTarget());
}

TEST(BitSchedule, RefusesStatesOfOthers) {
  BitSchedule schedule(of(8, 4, 10, 0), 2);
  nlohmann::json good = schedule.state();
  auto refuses = [&](const char *name, const nlohmann::json &value, const char *text) {
    nlohmann::json state = good;
    state[name] = value;
    try {
      schedule.restore(state);
      ADD_FAILURE() << state;
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
    EXPECT_EQ(schedule.state(), good);
  };
  refuses("updates", -1, "updates: found -1, expected an integer of 0 to");
  refuses("updates", "many", "updates: found \"many\"");
  refuses("start_bits", 25, "start_bits: found 25, expected an integer of 1 to 24");
  refuses("quantize_period", 0, "quantize_period: found 0, expected an integer of 1 to");
  refuses("quantize_change_ratio", 0, "quantize_change_ratio: found 0, expected a number in (0, 1]");
  refuses("bits", {8, 3}, "bits: found 3, expected an integer of 4 to 8");
  refuses("bits", {8}, "bits: found [8], expected a list of 2");
  refuses("periods", {0, 10}, "periods: found 0, expected an integer of 1 to");
  refuses("factors", {1, 6}, "factors: found 6, expected an integer of 1 to 5");
  refuses("ages", {0, 1}, "ages: found 1, expected an integer of 0 to 0");
  refuses("ages", nullptr, "ages: found null, expected a list of 2");
  EXPECT_THROW(schedule.restore(3), Error);
}
