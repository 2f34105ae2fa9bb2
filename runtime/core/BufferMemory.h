// Where the memory of buffers comes from. These functions are a file of their own so that a program can bring others:
// the linker takes its definitions and leaves those of the library (test/guarded does, with guard pages).
#ifndef DEEPSTRIDE_RUNTIME_CORE_BUFFERMEMORY_H
#define DEEPSTRIDE_RUNTIME_CORE_BUFFERMEMORY_H

#include <cstddef>
#include <cstdint>

namespace ds {

// Whether somebody watches the bounds of buffers: then each is an allocation of its own and of its exact size, parts of
// the workspace and constants, too, and threads share launches of any size.
bool areBoundsWatched();

// Memory of at least so many bytes, 64-byte aligned unless bounds are watched; `granted` says how many they are. Null
// when there is none.
uint8_t *takeMemory(size_t bytes, size_t &granted);

// Big buffers lie on huge pages where the system has them: fewer faults on first touch, fewer TLB misses after.
inline constexpr size_t hugePage = size_t(2) << 20;
inline size_t memoryUnit(size_t bytes) { return bytes >= 2 * hugePage ? hugePage : 64; }

// How many bytes takeMemory grants where nobody watches bounds; touching some may take them all.
inline size_t grantedBytes(size_t bytes) {
  size_t unit = memoryUnit(bytes);
  return (bytes + unit - 1) / unit * unit;
}

// Takes back what takeMemory gave.
void giveMemory(uint8_t *memory, size_t granted);

} // namespace ds
#endif
