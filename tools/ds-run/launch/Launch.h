// ds-run --ranks=N ...: starts the same command as N ranks, on this machine or by mpirun or srun, and again where one
// fails and --restarts says so.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_LAUNCH_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_LAUNCH_H

#include "tools/ds-run/launch/LaunchOptions.h"

#include <functional>
#include <optional>
#include <string>

namespace ds {

// What the launcher must know of the command.
struct LaunchedCommand {
  std::string name;                  // of the subcommand; empty: ds-run PKG
  std::string checkpoint, resumeTag; // of train
  // The largest number of ranks up to one that its batches can be divided among; null: any number is.
  std::function<unsigned(unsigned)> fittingRanks;
};

// Nothing where this process goes on itself: no rank is asked for, they are threads, or it is one. Throws Error.
std::optional<int> launch(const LaunchOptions &options, const Arguments &arguments, const LaunchedCommand &command);

// How many threads of one process are ranks.
unsigned threadRanks(const LaunchOptions &options);

} // namespace ds
#endif
