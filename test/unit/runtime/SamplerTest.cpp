#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/training/Sampler.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace ds;
using namespace ds::test;

namespace {

// The vectors of Random123, its authors' library.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(philoxKey(0x299f31d0a4093822), (PhiloxKey{0xa4093822, 0x299f31d0}));
}

std::vector<int64_t> epochOf(const Sampler &sampler, int64_t epoch) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < sampler.samples(); ++i)
    order.push_back(sampler.at(epoch, i));
  return order;
}

TEST(Sampler, EachEpochIsAPermutation) {
  std::vector<int64_t> sizes = {255, 256, 257, 1000, 4095, 4096, 4097, 60000};
  for (int64_t size = 1; size <= 70; ++size)
    sizes.push_back(size);
  for (int64_t size : sizes)
    for (uint64_t seed : {uint64_t(0), uint64_t(1), ~uint64_t(0)}) {
      Sampler sampler(size, seed, true);
      for (int64_t epoch : {int64_t(0), int64_t(1), int64_t(1) << 40}) {
        std::vector<bool> seen(static_cast<size_t>(size));
        for (int64_t sample : epochOf(sampler, epoch)) {
          ASSERT_TRUE(sample >= 0 && sample < size) << size;
          ASSERT_FALSE(seen[static_cast<size_t>(sample)]) << size;
          seen[static_cast<size_t>(sample)] = true;
        }
      }
    }
}

TEST(Sampler, EpochsAndSeedsDiffer) {
  Sampler a(100, 1, true), b(100, 2, true);
  EXPECT_NE(epochOf(a, 0), epochOf(a, 1));
  EXPECT_NE(epochOf(a, 0), epochOf(a, int64_t(1) << 32));
  EXPECT_NE(epochOf(a, 0), epochOf(b, 0));
  EXPECT_EQ(epochOf(a, 3), epochOf(Sampler(100, 1, true), 3));
}

// A checkpoint of today must go on with the same samples tomorrow.
TEST(Sampler, OrderIsFixedForever) {
  EXPECT_EQ(epochOf(Sampler(10, 42, true), 0), (std::vector<int64_t>{0, 5, 4, 9, 1, 2, 6, 3, 7, 8}));
}

TEST(Sampler, ReachesAllOrdersOfFew) {
  std::set<std::vector<int64_t>> orders;
  Sampler sampler(4, 7, true);
  for (int64_t epoch = 0; epoch < 1000; ++epoch)
    orders.insert(epochOf(sampler, epoch));
  EXPECT_EQ(orders.size(), 24u);
}

// Every sample comes at every place equally often: chi-square over epochs, within five standard deviations.
TEST(Sampler, PlacesAreUniform) {
  for (int64_t size : {3, 10, 16, 37}) {
    constexpr int64_t epochs = 4000;
    Sampler sampler(size, 11, true);
    std::vector<int64_t> counts(static_cast<size_t>(size * size));
    for (int64_t epoch = 0; epoch < epochs; ++epoch)
      for (int64_t i = 0; i < size; ++i)
        ++counts[static_cast<size_t>(i * size + sampler.at(epoch, i))];
    double expected = double(epochs) / double(size), sum = 0;
    for (int64_t count : counts)
      sum += (double(count) - expected) * (double(count) - expected) / expected;
    double freedom = double((size - 1) * (size - 1));
    EXPECT_LT(sum, freedom + 5 * std::sqrt(2 * freedom) + 5) << size;
  }
}

TEST(Sampler, LargeDataNeedsNoTable) {
  Sampler sampler(int64_t(1) << 62, 3, true);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i)
    seen.insert(sampler.at(0, i));
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Sampler, KeepsTheOrderWithoutShuffling) {
  Sampler sampler(5, 1, false, 2);
  EXPECT_EQ(epochOf(sampler, 1), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(sampler.hasEpoch(1));
  EXPECT_FALSE(sampler.hasEpoch(2));
  EXPECT_TRUE(Sampler(5, 1, false).hasEpoch(int64_t(1) << 60));
}

TEST(Sampler, RefusesWhatIsNoPlace) {
  EXPECT_EQ(errorOf([] { Sampler(0, 1, true); }), "found 0 samples, expected at least 1");
  EXPECT_EQ(errorOf([] { Sampler(3, 1, true).at(0, 3); }), "epoch 0, place 3: expected a place of 0 to 2");
  EXPECT_EQ(errorOf([] { Sampler(3, 1, true, -1); }), "found -1 epochs, expected 1 or more, or 0 for no end");
}

} // namespace
