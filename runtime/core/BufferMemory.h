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

// Takes back what takeMemory gave.
void giveMemory(uint8_t *memory, size_t granted);

} // namespace ds
#endif
