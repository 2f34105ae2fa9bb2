// The published vectors of progressive layer dropping, and what its draws are.
#include "runtime/training/LayerDrop.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

namespace ds {
namespace {

LayerDropSettings settings(double theta, double gamma, bool isPaper = false) { return {theta, gamma, isPaper}; }

TEST(LayerDrop, FollowsThePublishedTheta) {
  LayerDrop drop(settings(0.5, 0.001), 12);
  const std::pair<int64_t, double> published[] = {{0, 1.0},       {1, .99950},    {100, .95242},  {693, .75004},
                                                  {1000, .68394}, {2000, .56767}, {5000, .50337}, {10000, .50002}};
  for (auto [time, theta] : published)
    EXPECT_NEAR(drop.theta(time + 1), theta, 6e-6) << time; // step k uses the theta of k - 1
  EXPECT_EQ(drop.theta(0), 1);
  EXPECT_EQ(LayerDrop(settings(1, 0.5), 3).theta(1000000), 1);
  EXPECT_EQ(LayerDrop(settings(0, 0), 3).theta(1000000), 1);
  EXPECT_EQ(LayerDrop(settings(0, 1e9), 3).theta(2), 0);
}

TEST(LayerDrop, KeepsByDepth) {
  const double published[] = {1, .9583, .9167, .875, .8333, .7917, .75, .7083, .6667, .625, .5833, .5417};
  LayerDrop shipped(settings(0.5, 0), 12), paper(settings(0.5, 0, true), 12);
  double sum[2] = {0, 0};
  for (size_t block = 0; block < 12; ++block) {
    EXPECT_NEAR(shipped.keep(block, 0.5), published[block], 5e-5);
    sum[0] += shipped.keep(block, 0.5);
    sum[1] += paper.keep(block, 0.5);
  }
  EXPECT_NEAR(sum[0] / 12, .7708, 5e-5);
  EXPECT_NEAR(sum[1] / 12, .7292, 5e-5);
  EXPECT_EQ(paper.keep(11, 0.5), 0.5);
}

// Over many steps every block runs as often as its probability says, within 4 standard deviations, and what it adds has
// the mean of a block that always runs.
TEST(LayerDrop, DrawsWithItsProbabilities) {
  constexpr int64_t steps = 20000;
  LayerDrop drop(settings(0.5, 1e9), 12); // theta is 0.5 from step 2 on
  std::vector<double> ran(12), added(12);
  for (int64_t step = 2; step < 2 + steps; ++step) {
    std::vector<LayerGate> gates = drop.draw({77, step, step % 3});
    ASSERT_EQ(gates.size(), 12U);
    for (size_t block = 0; block < 12; ++block) {
      ran[block] += gates[block].runs;
      added[block] += gates[block].runs ? gates[block].scale : 0;
      if (gates[block].runs)
        EXPECT_EQ(gates[block].scale, 1 / drop.keep(block, drop.theta(step)));
    }
  }
  for (size_t block = 0; block < 12; ++block) {
    double p = drop.keep(block, 0.5), spread = std::sqrt(p * (1 - p) / steps);
    EXPECT_NEAR(ran[block] / steps, p, 4 * spread + 1e-15) << block;
    EXPECT_NEAR(added[block] / steps, 1, 4 * spread / p + 1e-12) << block;
  }
}

TEST(LayerDrop, DrawsByPlaceAlone) {
  LayerDrop drop(settings(0.2, 1e9, true), 16);
  auto bits = [&](uint64_t seed, int64_t step, int64_t micro) {
    uint64_t found = 0;
    for (const LayerGate &gate : drop.draw({seed, step, micro}))
      found = 2 * found + gate.runs;
    return found;
  };
  EXPECT_EQ(bits(5, 9, 2), bits(5, 9, 2));
  std::set<uint64_t> different;
  for (uint64_t seed : {uint64_t(0), uint64_t(1), uint64_t(1) << 32})
    for (int64_t step = 5; step < 8; ++step)
      for (int64_t micro = 0; micro < 3; ++micro)
        different.insert(bits(seed, step, micro));
  EXPECT_GT(different.size(), 20U); // of 27; equal ones are chance
}

TEST(LayerDrop, NeverRunsWhatHasNoProbability) {
  LayerDrop drop(settings(0, 1e9, true), 2); // the last block: 1 - 2 / 2
  for (int64_t step = 2; step < 200; ++step) {
    LayerGate last = drop.draw({1, step, 0}).back();
    EXPECT_FALSE(last.runs);
    EXPECT_TRUE(std::isfinite(last.scale));
  }
}

TEST(LayerDrop, CountsWhatRan) {
  LayerCounts counts;
  counts.ran.resize(2);
  EXPECT_EQ(counts.rates(), (std::vector<double>{1, 1})); // nothing was dropped
  counts.add({{true, 1}, {false, 1}});
  counts.add({{true, 1}, {true, 2}});
  EXPECT_EQ(counts.rates(), (std::vector<double>{1, 0.5}));
}

} // namespace
} // namespace ds
