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
  Starter(Child child, bool waitsForLock) {
    EXPECT_EQ(pipe(hasBegun), 0);
    EXPECT_EQ(pipe(mayEnd), 0);
    pid = fork();
    if (pid != 0) {
      char byte = 0;
      EXPECT_TRUE(child == Child::None || read(hasBegun[0], &byte, 1) == 1);
      return;
    }
    close(mayEnd[1]);
    pid_t other = child == Child::None ? -1 : fork();
    if (other == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      char byte = 0;
      (void)!write(hasBegun[1], &byte, 1);
      (void)!read(mayEnd[0], &byte, 1); // its other end closes
      while (child == Child::Running)
        pause();
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
    for (int end : {hasBegun[0], hasBegun[1], mayEnd[0], mayEnd[1]})
      close(end);
  }

  void endChild() {
    close(mayEnd[1]);
    mayEnd[1] = -1;
  }

  pid_t pid = 0;

private:
  int hasBegun[2] = {-1, -1}, mayEnd[2] = {-1, -1};
};

// Whether the watch, which has seen the child and is then asked 20 times in a second, calls it stuck: within a second,
// unless it is given more.
bool isStuck(Starter &&starter, std::chrono::milliseconds patience, int looks = 20) {
  StarterWatch watch(starter.pid, patience);
  EXPECT_FALSE(watch.isStuck());
  starter.endChild();
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
