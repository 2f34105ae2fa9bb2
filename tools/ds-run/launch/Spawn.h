// Runs the ranks of this machine: starts them, passes on what they say and what is signalled, and ends all when one
// fails. No rank outlives the call, nor the process that makes it.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_SPAWN_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_SPAWN_H

#include <string>
#include <vector>

namespace ds {

struct RankProcess {
  unsigned rank = 0;
  std::vector<std::string> arguments;   // the program first
  std::vector<std::string> environment; // "NAME=VALUE" each
  int inherited = -1;                   // descriptor that stays open
};

struct SpawnOptions {
  std::string logDir;        // empty: no logs
  bool appendsLogs = false;  // else they are begun anew
  size_t world = 0;          // ranks of the job, of which some may run elsewhere
  bool isStarter = false;    // the one process is no rank, but starts them elsewhere, and tells of them itself
  std::string host;          // of ranks, where it is to be named
  bool tellsStarter = false; // who has started this process elsewhere reads reports on standard error
};

struct SpawnResult {
  int code = 0;               // 0, that of the first rank that failed, or 128 + the signal that this process got
  bool isInterrupted = false; // by such a signal
};

// The folder of logs, with those above it. Throws Error(Io).
void makeLogDir(const std::string &folder);

// Rank 0's standard output is this process's; that of others is dropped, or logged. Throws Error(Io).
SpawnResult runRanks(const std::vector<RankProcess> &ranks, const SpawnOptions &options);

} // namespace ds
#endif
