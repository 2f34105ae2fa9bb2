#include "runtime/comm/shm/SharedSegment.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds {
namespace {

constexpr size_t controlBytes = size_t(16) << 10;

// Large enough that a sleeper is woken for a few messages at once; all rings of many ranks stay within 128 MiB.
size_t dataBytes(unsigned world) {
  size_t bytes = size_t(256) << 10;
  while (bytes > (size_t(16) << 10) && bytes * 2 * world * world > (size_t(128) << 20))
    bytes /= 2;
  return bytes;
}

size_t pairBytes(unsigned world) { return numChannels * sizeof(RingPositions) + controlBytes + 2 * dataBytes(world); }

uint8_t *mapMemory(size_t bytes, int flags, int descriptor) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (memory == MAP_FAILED)
    fail(ErrorCode::Io, "could not map ", bytes, " bytes for ranks: ", std::strerror(errno));
  return static_cast<uint8_t *>(memory);
}

} // namespace

size_t SharedSegment::bytes(unsigned world) { return sizeof(Bell) * world + pairBytes(world) * world * world; }

std::shared_ptr<SharedSegment> SharedSegment::allocate(unsigned world) {
  uint8_t *memory = mapMemory(bytes(world), MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  return std::shared_ptr<SharedSegment>(new SharedSegment(memory, world));
}

std::shared_ptr<SharedSegment> SharedSegment::map(int descriptor, unsigned world) {
  struct stat info = {};
  if (fstat(descriptor, &info) != 0)
    fail(ErrorCode::InvalidArgument, "descriptor ", descriptor, " of the ranks' shared memory: ", std::strerror(errno));
  if (!S_ISREG(info.st_mode) || static_cast<size_t>(info.st_size) != bytes(world))
    fail(ErrorCode::InvalidArgument, "descriptor ", descriptor, " is no shared memory of ", world, " ranks: found ",
         info.st_size, " bytes, expected ", bytes(world));
  uint8_t *memory = mapMemory(bytes(world), MAP_SHARED, descriptor);
  close(descriptor);
  return std::shared_ptr<SharedSegment>(new SharedSegment(memory, world));
}

SharedSegment::~SharedSegment() { munmap(memory, bytes(ranks)); }

Bell &SharedSegment::bell(unsigned rank) const { return reinterpret_cast<Bell *>(memory)[rank]; }

Ring SharedSegment::ring(unsigned from, unsigned to, Channel channel) const {
  uint8_t *pair = memory + sizeof(Bell) * ranks + pairBytes(ranks) * (size_t(from) * ranks + to);
  auto *positions = reinterpret_cast<RingPositions *>(pair);
  uint8_t *data = pair + numChannels * sizeof(RingPositions);
  if (channel == Channel::Control)
    return {positions, data, controlBytes};
  size_t bytes = dataBytes(ranks);
  if (channel == Channel::ToOwner)
    return {positions + 1, data + controlBytes, bytes};
  return {positions + 2, data + controlBytes + bytes, bytes};
}

int makeSharedSegment(unsigned world) {
  int descriptor = memfd_create("ds-ranks", 0);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(SharedSegment::bytes(world))) != 0) {
    int reason = errno;
    if (descriptor >= 0)
      close(descriptor);
    fail(ErrorCode::Io, "could not make ", SharedSegment::bytes(world), " bytes of memory for ", world,
         " ranks: ", std::strerror(reason));
  }
  return descriptor;
}

} // namespace ds
