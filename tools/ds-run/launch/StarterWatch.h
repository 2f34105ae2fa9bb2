// Watches over an mpirun whose ranks have ended. Open MPI 4.1 with PMIx 4 sometimes waits for itself when it finishes
// after a rank was killed: its main thread, for a lock in PMIx_server_finalize, without end.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_STARTERWATCH_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_STARTERWATCH_H

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>

namespace ds {

class StarterWatch {
public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds usualPatience{5000};

  // Of a child of this process.
  explicit StarterWatch(pid_t starter, std::chrono::milliseconds patience = usualPatience)
      : starter(starter), patience(patience) {}

  // Whether its main thread has waited for one and the same lock all the time that it had patience for, while no
  // process that it has started was left, though there were some. To be asked now and then. False where /proc does not
  // tell.
  bool isStuck();

private:
  pid_t starter;
  std::chrono::milliseconds patience;
  bool hadChildren = false;
  std::string lock; // the system call and its arguments
  std::optional<Clock::time_point> since;
};

} // namespace ds
#endif
