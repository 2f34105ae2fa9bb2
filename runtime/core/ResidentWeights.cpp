#include "runtime/core/ResidentWeights.h"

#include "runtime/core/BufferMemory.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace ds {
namespace {

// Bytes of the file, and where they are copied to.
struct Range {
  uint64_t begin = 0, end = 0, to = 0;
};

std::vector<size_t> constantsOfEntries(const VariantInfo &variant) {
  std::vector<size_t> read;
  for (const EntryInfo &entry : variant.entries)
    for (const BufferInfo &buffer : entry.buffers)
      if (buffer.role == BufferRole::Constant)
        read.push_back(buffer.index);
  std::sort(read.begin(), read.end(), [&](size_t a, size_t b) {
    return std::pair(variant.constants[a].offset, a) < std::pair(variant.constants[b].offset, b);
  });
  read.erase(std::unique(read.begin(), read.end()), read.end());
  return read;
}

// Constants may lie in one another. Each range keeps how its first byte lies to cache lines.
std::vector<Range> rangesOf(const VariantInfo &variant, const std::vector<size_t> &read, size_t &bytes) {
  constexpr uint64_t line = 64;
  std::vector<Range> ranges;
  for (size_t index : read) {
    const ConstantInfo &constant = variant.constants[index];
    if (!ranges.empty() && constant.offset <= ranges.back().end)
      ranges.back().end = std::max(ranges.back().end, constant.offset + constant.bytes);
    else
      ranges.push_back({constant.offset, constant.offset + constant.bytes, 0});
  }
  bytes = 0;
  for (Range &range : ranges) {
    range.to = bytes + range.begin % line;
    bytes = (range.to + range.end - range.begin + line - 1) / line * line;
  }
  return ranges;
}

void copy(const MappedFile &weights, const std::vector<Range> &ranges, uint8_t *to, unsigned threads) {
  constexpr uint64_t piece = uint64_t(4) << 20;
  std::vector<Range> pieces;
  for (const Range &range : ranges)
    for (uint64_t from = range.begin; from < range.end; from += piece)
      pieces.push_back({from, std::min(from + piece, range.end), range.to + from - range.begin});
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t number = next++; number < pieces.size(); number = next++) {
      const Range &own = pieces[number];
      std::memcpy(to + own.to, weights.data() + own.begin, own.end - own.begin);
      weights.release(own.begin, own.end - own.begin); // weights would be in memory twice
    }
  };
  std::vector<std::thread> others;
  try {
    for (unsigned number = 1; number < threads; ++number)
      others.emplace_back(work);
  } catch (const std::system_error &) { // fewer do it, too
  }
  work();
  for (std::thread &other : others)
    other.join();
}

size_t numberOf(const char *path) {
  size_t number = 0;
  return std::ifstream(path) >> number ? number : std::numeric_limits<size_t>::max(); // "max": no limit
}

} // namespace

size_t availableMemory() {
  size_t available = std::numeric_limits<size_t>::max();
  std::ifstream machine("/proc/meminfo");
  for (std::string name; machine >> name;) {
    size_t kilobytes = 0;
    if (name == "MemAvailable:" && machine >> kilobytes)
      available = kilobytes << 10;
    machine.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  size_t most = numberOf("/sys/fs/cgroup/memory.max"), used = numberOf("/sys/fs/cgroup/memory.current");
  if (most != std::numeric_limits<size_t>::max())
    available = std::min(available, most - std::min(most, used));
  rlimit space;
  size_t pages = 0; // of addresses; the first number of the file
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
      std::ifstream("/proc/self/statm") >> pages) {
    size_t own = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    available = std::min<size_t>(available, space.rlim_cur - std::min<size_t>(space.rlim_cur, own));
  }
  return available;
}

ResidentWeights::ResidentWeights(const VariantInfo &variant, const MappedFile &weights, unsigned threads) {
  std::vector<size_t> read = constantsOfEntries(variant);
  size_t bytes = 0, granted = 0;
  std::vector<Range> ranges = rangesOf(variant, read, bytes);
  if (memoryUnit(bytes) != hugePage || bytes > availableMemory() / 2)
    return;
  uint8_t *taken = takeMemory(bytes, granted);
  if (!taken)
    return;
  memory.reset(taken, [granted](uint8_t *taken) { giveMemory(taken, granted); });
  size = bytes;
  copy(weights, ranges, taken, threads);
  constants.resize(variant.constants.size());
  for (size_t index : read) {
    uint64_t offset = variant.constants[index].offset;
    const Range &range = *std::prev(std::upper_bound(ranges.begin(), ranges.end(), offset,
                                                     [](uint64_t place, const Range &r) { return place < r.begin; }));
    constants[index] = taken + range.to + (offset - range.begin);
  }
}

} // namespace ds
