// Which rank runs where, and whether this process is a rank already.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKS_H

#include "tools/ds-run/launch/Hostfile.h"

#include <optional>
#include <string>
#include <vector>

namespace ds {

struct RankPlace {
  std::string host;
  unsigned slot = 0, localRank = 0; // the slot's number; how many ranks of the host come before
};

// Ranks are numbered host by host, slot by slot.
std::vector<RankPlace> placeRanks(const std::vector<Host> &hosts);

// What is left of a selection where a hostfile of now has lost hosts or slots.
std::vector<Host> leftOf(const std::vector<Host> &selected, const std::vector<Host> &now);

std::string hostName(); // of this machine; empty where it has none
bool isThisMachine(const std::string &host);
unsigned processorCount(); // that this process may use

// What has started this process as a rank.
struct StartedRank {
  std::string starter; // "ds-run", "mpirun" or "srun"
  unsigned rank = 0, world = 1;
  unsigned localRank = 0, onHost = 1; // of the ranks on this host: how many come before, and how many there are
};

// By the environment: DS_RANK, OMPI_COMM_WORLD_RANK, or SLURM_PROCID of a step of several tasks. Throws
// Error(InvalidArgument) for a variable that is no number.
std::optional<StartedRank> startedRank();

} // namespace ds
#endif
