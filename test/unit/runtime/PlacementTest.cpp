#include "test/unit/runtime/PackageBuilder.h"
#include "test/unit/support/Seed.h"

#include "runtime/core/Placement.h"
#include "runtime/core/ThreadPool.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace ds;

namespace {

void expectNoOverlap(const std::vector<LiveRange> &ranges, const Placement &placement) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    ASSERT_EQ(placement.offsets[i] % 64, 0u);
    ASSERT_LE(placement.offsets[i] + ranges[i].bytes, placement.total);
    for (size_t j = 0; j < i; ++j) {
      bool live = ranges[i].first <= ranges[j].last && ranges[j].first <= ranges[i].last;
      bool share = placement.offsets[i] < placement.offsets[j] + ranges[j].bytes &&
                   placement.offsets[j] < placement.offsets[i] + ranges[i].bytes;
      ASSERT_FALSE(live && share) << i << " and " << j;
    }
  }
}

TEST(Placement, NeverOverlapsForRandomIntervals) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<LiveRange> ranges(random() % 120);
    for (LiveRange &range : ranges) {
      range.bytes = random() % 3 ? random() % 5000 : 0;
      range.first = random() % 100;
      range.last = range.first + random() % 30;
    }
    Placement placement = placeBuffers(ranges);
    expectNoOverlap(ranges, placement);
    EXPECT_GE(placement.total, placement.peakLive);
    Placement again = placeBuffers(ranges);
    EXPECT_EQ(again.offsets, placement.offsets);
  }
}

// Plays the calls through: every range fills its bytes at its first launch and must find them at its last, whatever the
// others wrote. Sizes and intervals are new in every run.
TEST(Placement, KeepsWhatLivesOverRandomIntervals) {
  uint32_t seed = randomSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
    uint32_t launches = 1 + below(60), longest = 1 + below(launches), largest = 1 + below(3000);
    std::vector<LiveRange> ranges(random() % 150);
    for (LiveRange &range : ranges) {
      range.bytes = below(5) ? below(largest) : below(3) * 64;
      range.first = below(launches);
      range.last = std::min(range.first + below(longest), launches - 1);
    }
    Placement placement = placeBuffers(ranges);
    std::vector<uint32_t> memory(placement.total, ~0u);
    for (uint32_t launch = 0; launch < launches; ++launch) {
      for (uint32_t i = 0; i < ranges.size(); ++i)
        if (ranges[i].first == launch)
          for (uint64_t at = 0; at < ranges[i].bytes; ++at)
            memory.at(placement.offsets[i] + at) = i;
      for (uint32_t i = 0; i < ranges.size(); ++i)
        if (ranges[i].first <= launch && launch <= ranges[i].last)
          for (uint64_t at = 0; at < ranges[i].bytes; ++at)
            ASSERT_EQ(memory.at(placement.offsets[i] + at), i) << "launch " << launch << ", round " << round;
    }
  }
}

TEST(Placement, KeepsHugeRangesApart) {
  uint32_t seed = randomSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<LiveRange> ranges(40);
    for (LiveRange &range : ranges) {
      range.bytes = random() % (uint64_t(1) << (10 + random() % 40));
      range.first = static_cast<uint32_t>(random() % 20);
      range.last = range.first + static_cast<uint32_t>(random() % 10);
    }
    expectNoOverlap(ranges, placeBuffers(ranges));
  }
}

TEST(Placement, ReusesBytesOfTheDead) {
  Placement placement = placeBuffers({{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}});
  EXPECT_EQ(placement.total, 2048u);
  EXPECT_EQ(placement.peakLive, 2048u);
}

TEST(Placement, TakesTheSmallestGapThatFits) {
  // Between the long-lived blocks there are gaps of 256 and 128 bytes at launch 1; 128 bytes belong into the second.
  std::vector<LiveRange> ranges = {{1024, 0, 9}, {256, 0, 0}, {512, 0, 9}, {128, 0, 0}, {128, 1, 1}};
  expectNoOverlap(ranges, placeBuffers(ranges));
  EXPECT_EQ(placeBuffers(ranges).total, 1024u + 512 + 256 + 128);
}

TEST(Placement, RefusesImpossibleSizes) {
  EXPECT_NE(test::errorOf([] { placeBuffers({{uint64_t(1) << 60, 0, 0}}); }), "");
  EXPECT_NE(test::errorOf([] { placeBuffers({{uint64_t(1) << 56, 0, 0}, {uint64_t(1) << 56, 1, 1}}); }), "");
}

TEST(StaticChunk, TilesTheGridInMultiplesOfTheGrain) {
  for (int64_t grid : {0, 1, 5, 63, 64, 65, 1000})
    for (int64_t grain : {1, 4, 7, 2000})
      for (unsigned count : {1u, 2u, 3u, 16u}) {
        int64_t at = 0;
        for (unsigned t = 0; t < count; ++t) {
          WorkRange range = staticChunk(grid, grain, t, count);
          ASSERT_EQ(range.begin, at);
          ASSERT_TRUE(range.end == grid || range.end % grain == 0);
          at = range.end;
        }
        ASSERT_EQ(at, grid);
      }
}

} // namespace
