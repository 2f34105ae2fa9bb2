// What a process does that somebody has started as a rank.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_BECOMERANK_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_BECOMERANK_H

#include "tools/ds-run/launch/LaunchOptions.h"
#include "tools/ds-run/launch/Ranks.h"

#include <optional>

namespace ds {

// A rank of mpirun or srun does for itself what the launcher does for its own: output of rank 0 only, logs, a share of
// the processors. Nothing: this process goes on as the rank. Throws Error where options of ranks contradict the
// starter.
std::optional<int> becomeRank(const StartedRank &started, const LaunchOptions &options, const Arguments &arguments);

} // namespace ds
#endif
