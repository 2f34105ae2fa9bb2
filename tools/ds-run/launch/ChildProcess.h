// One process that the launcher starts, and how it ended.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_CHILDPROCESS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_CHILDPROCESS_H

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ds {

struct ChildSpec {
  std::vector<std::string> arguments;   // the program first, looked up in PATH
  std::vector<std::string> environment; // "NAME=VALUE" each
  int input = 0, output = 1, error = 2; // descriptors that become its standard ones
  std::vector<int> inherited;           // stay open under their numbers
  pid_t group = 0;                      // process group to join; 0: one of its own
  int deathSignal = 0;                  // it gets this one when this process ends, however it does
};

// Throws Error(Io) naming the program when it cannot be started. Signals that are blocked here are not blocked there.
// For processes of one thread.
pid_t startChild(const ChildSpec &child);

// From the status of waitpid: as shells count, 128 + signal where a signal ended it.
int exitCodeOf(int status);
std::string signalText(int number); // "SIGKILL"

// How many processes the kernel's out-of-memory killer has ended on this machine; none where it does not say.
std::optional<long> outOfMemoryKills();
// What follows "was killed by SIGKILL", by those counts before the job and after: anybody may have killed the process.
std::string causeOfKill(std::optional<long> before, std::optional<long> now);

} // namespace ds
#endif
