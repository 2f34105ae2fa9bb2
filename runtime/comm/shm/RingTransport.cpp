#include "runtime/comm/shm/RingTransport.h"

#include <algorithm>
#include <cstring>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ds {
namespace {

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

long futex(std::atomic<uint32_t> &word, int operation, uint32_t value, const timespec *timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), operation, value, timeout, nullptr, 0);
}

} // namespace

RingTransport::RingTransport(std::shared_ptr<SharedSegment> segment, unsigned rank)
    : segment(std::move(segment)), number(rank) {}

void RingTransport::ring(unsigned rank) {
  Bell &bell = segment->bell(rank);
  bell.rings.fetch_add(1);
  if (bell.isAsleep.load())
    futex(bell.rings, FUTEX_WAKE, 1, nullptr);
}

size_t RingTransport::send(unsigned peer, Channel channel, const void *data, size_t bytes) {
  Ring ring = segment->ring(number, peer, channel);
  uint64_t written = ring.positions->written.load(std::memory_order_relaxed);
  uint64_t read = ring.positions->read.load(std::memory_order_acquire);
  size_t taken = std::min(bytes, ring.capacity - static_cast<size_t>(written - read));
  if (taken == 0)
    return 0;
  size_t at = static_cast<size_t>(written) & (ring.capacity - 1), first = std::min(taken, ring.capacity - at);
  std::memcpy(ring.data + at, data, first);
  std::memcpy(ring.data, static_cast<const uint8_t *>(data) + first, taken - first);
  ring.positions->written.store(written + taken, std::memory_order_release);
  this->ring(peer);
  return taken;
}

size_t RingTransport::receive(unsigned peer, Channel channel, void *data, size_t bytes) {
  Ring ring = segment->ring(peer, number, channel);
  uint64_t read = ring.positions->read.load(std::memory_order_relaxed);
  uint64_t written = ring.positions->written.load(std::memory_order_acquire);
  size_t taken = std::min(bytes, static_cast<size_t>(written - read));
  if (taken == 0)
    return 0;
  size_t at = static_cast<size_t>(read) & (ring.capacity - 1), first = std::min(taken, ring.capacity - at);
  std::memcpy(data, ring.data + at, first);
  std::memcpy(static_cast<uint8_t *>(data) + first, ring.data, taken - first);
  ring.positions->read.store(read + taken, std::memory_order_release);
  // A full ring, whose writer waits, is seen here as at least half full.
  if (static_cast<size_t>(written - read) >= ring.capacity / 2)
    this->ring(peer);
  return taken;
}

// A ring of the bell since the last pause means that the last look at the rings may have been too early.
void RingTransport::pause(std::chrono::microseconds longest) {
  Bell &bell = segment->bell(number);
  bell.isAsleep.store(1);
  if (bell.rings.load() == heard) {
    timespec timeout = {static_cast<time_t>(longest.count() / 1000000),
                        static_cast<long>(longest.count() % 1000000 * 1000)};
    futex(bell.rings, FUTEX_WAIT, heard, &timeout);
  }
  bell.isAsleep.store(0);
  heard = bell.rings.load();
}

} // namespace ds
