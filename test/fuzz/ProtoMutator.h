// Mutates protobuf messages as messages, without knowing their schema: bytes changed at random would die at the first
// length that no longer fits.
#ifndef DEEPSTRIDE_TEST_FUZZ_PROTOMUTATOR_H
#define DEEPSTRIDE_TEST_FUZZ_PROTOMUTATOR_H

#include "test/fuzz/Random.h"

namespace deepstride::fuzz {

size_t mutateProto(uint8_t *data, size_t size, size_t maxSize, unsigned seed);

/// The first message with a part of the second in it.
size_t crossProtos(const uint8_t *first, size_t firstSize, const uint8_t *second, size_t secondSize, uint8_t *out,
                   size_t maxSize, unsigned seed);

} // namespace deepstride::fuzz

#endif
