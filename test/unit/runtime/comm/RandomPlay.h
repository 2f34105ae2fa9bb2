// Random collectives on the ranks of a communicator, judged by bits and by bytes.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_RANDOMPLAY_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_RANDOMPLAY_H

#include "runtime/comm/Communicator.h"

namespace ds::test {

// Draws collectives, the same on all ranks, of which several are under way, and waits in an order of its own. Throws
// what is wrong.
void playRandom(Communicator &communicator, uint32_t seed, int rounds, int64_t largestShard);

} // namespace ds::test
#endif
