// The memory that ranks of one machine share: a bell per rank, and rings of bytes between every two ranks.
#ifndef DEEPSTRIDE_RUNTIME_COMM_SHM_SHAREDSEGMENT_H
#define DEEPSTRIDE_RUNTIME_COMM_SHM_SHAREDSEGMENT_H

#include "runtime/comm/Transport.h"

#include <atomic>
#include <memory>

namespace ds {

// Rung when something may have changed for a rank.
struct alignas(64) Bell {
  std::atomic<uint32_t> rings;
  std::atomic<uint32_t> isAsleep;
};

// Positions only grow; each side writes its own, on a cache line of its own.
struct RingPositions {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

struct Ring {
  RingPositions *positions;
  uint8_t *data;
  size_t capacity; // a power of two
};

class SharedSegment {
public:
  // Memory of this process, for ranks that are its threads.
  static std::shared_ptr<SharedSegment> allocate(unsigned world);
  // What makeSharedSegment() gave, here or in the process that started this one; the descriptor is closed.
  static std::shared_ptr<SharedSegment> map(int descriptor, unsigned world);
  ~SharedSegment();
  SharedSegment(const SharedSegment &) = delete;
  SharedSegment &operator=(const SharedSegment &) = delete;

  unsigned world() const { return ranks; }
  Bell &bell(unsigned rank) const;
  Ring ring(unsigned from, unsigned to, Channel channel) const;

  static size_t bytes(unsigned world);

private:
  SharedSegment(uint8_t *memory, unsigned world) : memory(memory), ranks(world) {}

  uint8_t *memory;
  unsigned ranks;
};

// A segment for so many ranks, all zeros, without a name: nothing is left when the last process that holds the
// descriptor has ended. It is inherited by processes that are started.
int makeSharedSegment(unsigned world);

} // namespace ds
#endif
