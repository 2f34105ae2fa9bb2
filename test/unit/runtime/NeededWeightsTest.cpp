// Ranges of bytes, against a flag for every byte.
#include "runtime/core/NeededWeights.h"
#include "test/unit/support/Seed.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace ds;

namespace {

TEST(ByteRanges, KnowEveryByte) {
  constexpr size_t size = 60;
  uint64_t seed = randomSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  auto number = [&] { return random() % (size + 1); };
  for (int round = 0; round < 200; ++round) {
    ByteRanges ranges;
    std::vector<bool> flags(size);
    for (int i = 0; i < 8; ++i) {
      uint64_t begin = number(), end = i % 2 ? number() : std::min<uint64_t>(begin + random() % 9, size);
      ranges.add(begin, end);
      for (uint64_t at = begin; at < end; ++at)
        flags[at] = true;
      EXPECT_EQ(ranges.bytes(), static_cast<uint64_t>(std::count(flags.begin(), flags.end(), true)));
      for (int look = 0; look < 20; ++look) {
        uint64_t first = number(), last = number();
        auto from = flags.begin() + static_cast<ptrdiff_t>(std::min(first, last)),
             to = flags.begin() + static_cast<ptrdiff_t>(last);
        EXPECT_EQ(ranges.overlaps(first, last), std::find(from, to, true) != to) << first << " to " << last;
        EXPECT_EQ(ranges.contains(first, last), std::find(from, to, false) == to) << first << " to " << last;
      }
    }
  }
}

} // namespace
