// Processes that wait for themselves, and such as only look like it.
#include "tools/ds-run/launch/StarterWatch.h"

#include <csignal>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace ds;

namespace {

using namespace std::chrono_literals;

enum class Child { None, Ended, Running };

// A process that starts another one and then waits: for a lock that nobody releases, or for a signal.
class Starter {
public:
  Starter(Child child, bool waitsForLock) : pid(fork()) {
    if (pid != 0)
      return;
    pid_t other = child == Child::None ? -1 : fork();
    if (other == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::this_thread::sleep_for(child == Child::Ended ? 500ms : 60s);
      _exit(0);
    }
    static int lock = 2;
    while (true)
      if (waitsForLock)
        syscall(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
      else
        pause();
  }
  Starter(const Starter &) = delete;
  Starter &operator=(const Starter &) = delete;
  ~Starter() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  const pid_t pid;
};

// Whether the watch, which is asked 20 times in a second, calls it stuck: within a second, unless it is given more.
bool isStuck(const Starter &starter, std::chrono::milliseconds patience, int looks = 20) {
  StarterWatch watch(starter.pid, patience);
  for (int look = 0; look < looks; ++look, std::this_thread::sleep_for(50ms))
    if (watch.isStuck())
      return true;
  return false;
}

TEST(StarterWatch, KnowsOneThatWaitsForALockWhenItsRanksHaveEnded) {
  EXPECT_TRUE(isStuck(Starter(Child::Ended, true), 300ms, 400));
}

TEST(StarterWatch, SparesOneThatHasPatienceLeft) { EXPECT_FALSE(isStuck(Starter(Child::Ended, true), 60s)); }

TEST(StarterWatch, SparesOneWithRanks) { EXPECT_FALSE(isStuck(Starter(Child::Running, true), 300ms)); }

TEST(StarterWatch, SparesOneThatHasStartedNone) { EXPECT_FALSE(isStuck(Starter(Child::None, true), 300ms)); }

TEST(StarterWatch, SparesOneThatWaitsForAnythingElse) { EXPECT_FALSE(isStuck(Starter(Child::Ended, false), 300ms)); }

TEST(StarterWatch, SparesOneThatIsGone) {
  StarterWatch watch(1 << 30, 0ms); // no process has this number
  EXPECT_FALSE(watch.isStuck());
  EXPECT_FALSE(watch.isStuck());
}

} // namespace
