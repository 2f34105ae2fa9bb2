// Buffers between pages that nobody may touch, in place of runtime/core/BufferMemory.cpp: a kernel that reads or writes
// one byte behind its buffers ends the process. With DS_GUARDED_FRONT they begin where a page begins, so that a byte
// before them does. Generated code needs no more than the alignment of elements, so that buffers may end anywhere.
#include "runtime/core/BufferMemory.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace ds {
namespace {

#ifdef DS_GUARDED_FRONT
constexpr bool isFrontTight = true;
#else
constexpr bool isFrontTight = false;
#endif

constexpr size_t guard = size_t(64) << 10; // a stride too far shall still be seen
// Of every float a NaN, of every integer a strange number: what reads memory before it is written differs.
constexpr int unwritten = 0xFF;

struct Mapping {
  uint8_t *start;
  size_t room; // between the guards
};

size_t roomFor(size_t bytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Mapping mappingOf(uint8_t *memory, size_t bytes) {
  size_t room = roomFor(bytes);
  return {(isFrontTight ? memory : memory + bytes - room) - guard, room};
}

struct LiveBuffers {
  std::mutex mutex;
  std::map<uint8_t *, size_t> bytes;
};

LiveBuffers &liveBuffers() {
  static auto *live = new LiveBuffers; // never destroyed: buffers of other statics may outlive it
  return *live;
}

// Says which buffer was left, as far as that can be told, then ends the process as it would have ended.
void explain(int, siginfo_t *info, void *) {
  auto *address = static_cast<uint8_t *>(info->si_addr);
  for (const auto &[memory, bytes] : liveBuffers().bytes) {
    Mapping mapping = mappingOf(memory, bytes);
    if (address >= mapping.start && address < mapping.start + mapping.room + 2 * guard)
      std::fprintf(stderr, "access %td bytes %s a buffer of %zu bytes\n",
                   address < memory ? memory - address : address - memory - static_cast<ptrdiff_t>(bytes),
                   address < memory ? "before" : "behind the end of", bytes);
  }
  std::signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

const bool isHandled = [] {
  struct sigaction action = {};
  action.sa_sigaction = explain;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND;
  return sigaction(SIGSEGV, &action, nullptr) == 0;
}();

} // namespace

bool areBoundsWatched() { return true; }

uint8_t *takeMemory(size_t bytes, size_t &granted) {
  size_t room = roomFor(bytes);
  void *mapped = mmap(nullptr, room + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  uint8_t *first = static_cast<uint8_t *>(mapped) + guard;
  if (room != 0 && mprotect(first, room, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapped, room + 2 * guard);
    return nullptr;
  }
  std::memset(first, unwritten, room);
  granted = bytes;
  uint8_t *memory = isFrontTight ? first : first + room - bytes;
  std::lock_guard<std::mutex> lock(liveBuffers().mutex);
  liveBuffers().bytes[memory] = bytes;
  return memory;
}

void giveMemory(uint8_t *memory, size_t granted) {
  {
    std::lock_guard<std::mutex> lock(liveBuffers().mutex);
    liveBuffers().bytes.erase(memory);
  }
  Mapping mapping = mappingOf(memory, granted);
  munmap(mapping.start, mapping.room + 2 * guard);
}

} // namespace ds
