// By how much periods of layers grow.
#include "runtime/training/Curvature.h"

#include <gtest/gtest.h>

using namespace ds;
using Factors = std::vector<int64_t>;

TEST(PeriodFactors, GrowWithTheShareOfTheGreatest) {
  EXPECT_EQ(periodFactors({8, 6, 5.99, 4, 2, 1.99, 0.01}, 7), (Factors{5, 4, 3, 3, 2, 1, 1}));
}

TEST(PeriodFactors, CountMagnitudes) { EXPECT_EQ(periodFactors({-8, 2, -4}, 3), (Factors{5, 2, 3})); }

TEST(PeriodFactors, TakeWhatCouldNotBeComputedForTheGreatest) {
  EXPECT_EQ(periodFactors({0, 1, 4}, 3), (Factors{5, 2, 5}));
  EXPECT_EQ(periodFactors({0, 0}, 2), (Factors{5, 5}));
}

TEST(PeriodFactors, LeaveTheRestAlone) { EXPECT_EQ(periodFactors({1, 1}, 3), (Factors{5, 5, 1})); }
