// Offsets for workspace buffers, so that buffers that live at the same time never share bytes and the total is small.
#ifndef DEEPSTRIDE_RUNTIME_CORE_PLACEMENT_H
#define DEEPSTRIDE_RUNTIME_CORE_PLACEMENT_H

#include <cstdint>
#include <vector>

namespace ds {

struct LiveRange {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0; // launches, both included
};

struct Placement {
  std::vector<uint64_t> offsets; // multiples of 64, one per range
  uint64_t total = 0;
  uint64_t peakLive = 0; // the most bytes alive at once: no placement can be smaller
};

// Greedy by size: the largest range first, each into the smallest gap that holds it. Deterministic.
Placement placeBuffers(const std::vector<LiveRange> &ranges);

} // namespace ds
#endif
