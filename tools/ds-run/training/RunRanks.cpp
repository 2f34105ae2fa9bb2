#include "tools/ds-run/training/RunRanks.h"

#include "runtime/engine/RunConfig.h"
#include "runtime/training/CommunicatorRanks.h"
#include "tools/ds-run/launch/JoinRanks.h"

namespace ds {

RunRanks RunRanks::join() {
  RunRanks group;
  group.shared = joinRanks();
  if (group.shared) {
    group.joined = std::make_unique<CommunicatorRanks>(group.shared);
    group.own = group.joined.get();
  }
  return group;
}

std::string RunRanks::origin() const { return originOf(world()).from; }

void RunRanks::leave(const std::string &reason) {
  if (shared)
    shared->leave(reason);
}

} // namespace ds
