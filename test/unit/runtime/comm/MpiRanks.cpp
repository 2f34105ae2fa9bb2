// One rank under mpirun. usage: SEED [die|stop|loop]: random collectives; then the last rank does as told, and every
// other one prints what it says about that.
#include "test/unit/runtime/comm/OneBitPlay.h"
#include "test/unit/runtime/comm/RandomPlay.h"
#include "test/unit/runtime/comm/Ranks.h"
#include "test/unit/runtime/comm/SparseTable.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

using namespace ds;
using namespace ds::test;

namespace {

void trouble(const std::string &kind, Communicator &communicator) {
  unsigned world = communicator.world();
  std::vector<float> values(1000);
  if (communicator.rank() == world - 1) {
    if (kind != "loop")
      raise(kind == "die" ? SIGKILL : SIGSTOP);
    for (volatile bool forever = true; forever;)
      ;
  }
  communicator.wait(communicator.start(requestOf(CollectiveOp::AllReduce, values.data(), 1000, world)));
}

} // namespace

int main(int argc, char **argv) {
  try {
    std::optional<RankOptions> options = ranksOfEnvironment();
    if (argc < 2 || !options)
      return 2;
    auto communicator = connectRanks(*options);
    auto seed = static_cast<uint32_t>(std::strtoull(argv[1], nullptr, 10));
    playRandom(*communicator, seed, 20, 3000);
    if (communicator->world() > 1) {
      playOneBit(*communicator, seed, 5, 3000);
      playSparse(*communicator, seed, 5);
    }
    std::printf("rank %u of %u is right\n", communicator->rank(), communicator->world());
    std::fflush(stdout);
    if (argc > 2)
      trouble(argv[2], *communicator);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
