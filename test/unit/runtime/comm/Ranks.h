// Ranks of a test: as threads over every transport of one machine, or as processes.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_RANKS_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_RANKS_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Connect.h"

#include <functional>
#include <memory>
#include <sys/types.h>
#include <vector>

namespace ds::test {

enum class Wiring { Threads, SharedMemory, Tcp };
constexpr Wiring allWirings[] = {Wiring::Threads, Wiring::SharedMemory, Wiring::Tcp};
const char *wiringName(Wiring wiring);

using RankBody = std::function<void(unsigned rank, Communicator &communicator)>;

// Runs the body on every rank, each on a thread; what they threw, empty where nothing.
std::vector<std::string> onThreads(Wiring wiring, unsigned world, std::chrono::milliseconds timeout,
                                   const RankBody &body);

// The same on processes, over shared memory or TCP. The ranks' hosts are a, b, c, ...
class RankProcesses {
public:
  // `before` runs in each process before it joins the others.
  RankProcesses(
      Wiring wiring, unsigned world, std::chrono::milliseconds timeout, const RankBody &body,
      const std::function<void(unsigned rank)> &before = [](unsigned) {});
  ~RankProcesses(); // kills those that are left

  pid_t process(unsigned rank) const { return processes[rank]; }
  // What a rank threw; waits for it to end. "killed" where it ended otherwise, "hangs" after the limit.
  std::string errorOf(unsigned rank, std::chrono::seconds limit = std::chrono::seconds(20));

private:
  std::vector<pid_t> processes;
  std::vector<int> pipes;
};

// A request of one part that covers a tensor of f32.
CollectiveRequest requestOf(CollectiveOp op, float *data, int64_t count, unsigned world, float *own = nullptr);

} // namespace ds::test
#endif
