#include "runtime/core/Placement.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace ds {
namespace {

constexpr uint64_t alignment = 64;
constexpr uint64_t maxBytes = uint64_t(1) << 56;

struct Block {
  uint64_t begin, end;
  uint32_t first, last;
};

uint64_t findPlace(const std::vector<Block> &placed, uint64_t bytes, const LiveRange &range) {
  uint64_t end = 0, best = 0, bestGap = std::numeric_limits<uint64_t>::max();
  for (const Block &block : placed) { // by begin
    if (block.last < range.first || range.last < block.first)
      continue;
    uint64_t gap = block.begin > end ? block.begin - end : 0;
    if (gap >= bytes && gap < bestGap) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, block.end);
  }
  return bestGap == std::numeric_limits<uint64_t>::max() ? end : best;
}

uint64_t peakOf(const std::vector<LiveRange> &ranges, const std::vector<uint64_t> &rounded) {
  std::map<uint64_t, int64_t> changes;
  for (size_t i = 0; i < ranges.size(); ++i) {
    changes[ranges[i].first] += static_cast<int64_t>(rounded[i]);
    changes[uint64_t(ranges[i].last) + 1] -= static_cast<int64_t>(rounded[i]);
  }
  int64_t live = 0, peak = 0;
  for (const auto &[launch, change] : changes)
    peak = std::max(peak, live += change);
  return static_cast<uint64_t>(peak);
}

} // namespace

Placement placeBuffers(const std::vector<LiveRange> &ranges) {
  std::vector<uint64_t> rounded;
  uint64_t sum = 0;
  for (const LiveRange &range : ranges) {
    if (range.bytes > maxBytes || (sum += range.bytes) > maxBytes)
      fail(ErrorCode::OutOfMemory, "workspace of more than ", maxBytes, " bytes");
    rounded.push_back((range.bytes + alignment - 1) / alignment * alignment);
  }
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return rounded[a] != rounded[b] ? rounded[a] > rounded[b] : a < b; });

  Placement placement;
  placement.offsets.resize(ranges.size(), 0);
  std::vector<Block> placed;
  for (size_t i : order) {
    if (rounded[i] == 0)
      continue;
    uint64_t begin = findPlace(placed, rounded[i], ranges[i]);
    Block block{begin, begin + rounded[i], ranges[i].first, ranges[i].last};
    auto at = std::upper_bound(placed.begin(), placed.end(), block,
                               [](const Block &a, const Block &b) { return a.begin < b.begin; });
    placed.insert(at, block);
    placement.offsets[i] = begin;
    placement.total = std::max(placement.total, block.end);
  }
  placement.peakLive = peakOf(ranges, rounded);
  return placement;
}

} // namespace ds
