#include "runtime/core/BufferMemory.h"

#include <cstdlib>
#include <sys/mman.h>

namespace ds {
namespace {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DS_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef DS_ADDRESS_SANITIZER
constexpr bool isSanitized = true;
#else
constexpr bool isSanitized = false;
#endif

constexpr size_t alignment = 64;
} // namespace

bool areBoundsWatched() { return isSanitized; }

uint8_t *takeMemory(size_t bytes, size_t &granted) {
  size_t unit = isSanitized ? alignment : memoryUnit(bytes);
  bool big = unit == hugePage;
  granted = isSanitized ? bytes : grantedBytes(bytes);
  void *memory = nullptr;
  if (posix_memalign(&memory, unit, granted) != 0)
    return nullptr;
  if (big)
    madvise(memory, granted, MADV_HUGEPAGE);
  return static_cast<uint8_t *>(memory);
}

void giveMemory(uint8_t *memory, size_t) { std::free(memory); }

} // namespace ds
