#include "tools/ds-run/launch/JoinRanks.h"

#include "runtime/comm/Connect.h"
#include "tools/ds-run/launch/Ranks.h"

namespace ds {

std::shared_ptr<Communicator> joinRanks() {
  if (!startedRank()) // a batch script of Slurm has variables of a rank, and is none
    return nullptr;
  std::optional<RankOptions> options = ranksOfEnvironment();
  return options ? connectRanks(*options) : nullptr;
}

} // namespace ds
