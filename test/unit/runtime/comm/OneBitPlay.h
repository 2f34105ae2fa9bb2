// Random all-reduces that travel as 1 bit, on the ranks of a communicator.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_ONEBITPLAY_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_ONEBITPLAY_H

#include "runtime/comm/Communicator.h"

namespace ds::test {

// Several spaces, the same on all ranks, f32 and f64, are reduced again and again with others under way; every value
// and every byte is compared. Throws what is wrong. What comes out, as a number: of results, which all ranks have, and
// of this rank's errors.
struct OneBitOutcome {
  uint64_t results = 0, errors = 0;
};
OneBitOutcome playOneBit(Communicator &communicator, uint32_t seed, int rounds, int64_t largestShard);

} // namespace ds::test
#endif
