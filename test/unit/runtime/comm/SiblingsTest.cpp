// Which rank of a host has ended before MPI has brought all together, as one that waits finds out: processes below one
// that is called as a starter of MPI is.
#include "runtime/comm/mpi/Siblings.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace ds;
using namespace std::chrono_literals;

namespace {

constexpr auto longest = 4500ms; // until a rank is named, after it has ended

void diesWithParent(const char *name) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, name);
}

// A process that sleeps, with variables of that rank, as soon as it does.
pid_t startRank(std::optional<unsigned> rank) {
  int begun[2];
  if (pipe2(begun, O_CLOEXEC) != 0)
    _exit(1);
  pid_t process = fork();
  if (process != 0) {
    char none = 0;
    close(begun[1]);
    (void)!read(begun[0], &none, 1); // its end closes as the program starts
    close(begun[0]);
    return process;
  }
  diesWithParent("rank");
  std::string number = rank ? std::to_string(*rank) : "", first = "OMPI_COMM_WORLD_RANK=" + number,
              second = "OMPI_COMM_WORLD_LOCAL_RANK=" + number;
  const char *arguments[] = {"sleep", "100", nullptr};
  const char *variables[] = {first.c_str(), second.c_str(), "PMIX_NAMESPACE=job", nullptr}, *none[] = {nullptr};
  execve("/bin/sleep", const_cast<char **>(arguments), const_cast<char **>(rank ? variables : none));
  _exit(1);
}

// A starter with its ranks, and somebody who looks for these.
class Host {
public:
  Host(const char *starter, std::vector<std::optional<unsigned>> ranks, unsigned onHost, unsigned world)
      : count(ranks.size()) {
    EXPECT_EQ(pipe(ends), 0);
    process = fork();
    if (process != 0)
      return;
    diesWithParent(starter);
    for (std::optional<unsigned> rank : ranks) {
      pid_t started = startRank(rank);
      (void)!write(ends[1], &started, sizeof(started));
    }
    if (fork() == 0) {
      diesWithParent("ssh"); // which is no rank
      setenv("OMPI_COMM_WORLD_RANK", "0", 1);
      setenv("OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(onHost).c_str(), 1);
      setenv("PMIX_NAMESPACE", "job", 1);
      watch(world);
    }
    for (;;)
      pause();
  }
  Host(const Host &) = delete;
  Host &operator=(const Host &) = delete;
  ~Host() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
  }

  // The ranks, once somebody has looked at them.
  std::vector<pid_t> processes() {
    std::vector<pid_t> started(count);
    for (pid_t &one : started)
      EXPECT_EQ(read(ends[0], &one, sizeof(one)), ssize_t(sizeof(one)));
    char isSeen = 0;
    EXPECT_EQ(read(ends[0], &isSeen, 1), 1);
    EXPECT_EQ(isSeen, '.');
    return started;
  }

  // What is found, once something is or time is up.
  std::string said() {
    char text[512] = "";
    EXPECT_GT(read(ends[0], text, sizeof(text) - 1), 0);
    return text;
  }

private:
  [[noreturn]] void watch(unsigned world) {
    Siblings siblings("h", world);
    std::string found = siblings.missing();
    (void)!write(ends[1], found.empty() ? "." : "!", 1); // its starter may go on starting
    for (auto end = std::chrono::steady_clock::now() + longest; found.empty() && std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(100ms)) {
      found = siblings.missing();
      if (found.empty())
        found = siblings.stopped();
    }
    found = found.empty() ? "nothing" : found;
    (void)!write(ends[1], found.data(), found.size());
    _exit(0);
  }

  size_t count;
  int ends[2] = {-1, -1};
  pid_t process = 0;
};

const char *const ended = " ended before it had found the others, which look for it";

TEST(SiblingsTest, OneThatHasBeenKilled) {
  Host host("orted", {0, 1, 2}, 3, 4);
  pid_t victim = host.processes()[1];
  kill(victim, SIGKILL);
  EXPECT_EQ(host.said(), "rank 1 (host h, pid " + std::to_string(victim) + ")" + ended);
}

TEST(SiblingsTest, OneThatHasEndedAtOnce) {
  Host all("mpirun", {0, 2}, 3, 3), some("orted", {5, 7}, 3, 9);
  all.processes();
  some.processes();
  EXPECT_EQ(all.said(), std::string("rank 1 (host h)") + ended);
  EXPECT_EQ(some.said(), std::string("the rank that is number 0 of 3 on host h") + ended);
}

TEST(SiblingsTest, OneThatIsStopped) {
  Host host("orted", {0, 1}, 2, 2);
  pid_t victim = host.processes()[1];
  kill(victim, SIGSTOP);
  EXPECT_EQ(host.said(), "rank 1 (host h, pid " + std::to_string(victim) + ") is stopped");
}

// Of whom nothing is known, nothing is said: all are there, one is a program that shows no variables, ranks have no
// starter of MPI above them.
TEST(SiblingsTest, NobodyIsMissed) {
  Host there("orted", {0, 1, 2}, 3, 4), hidden("orted", {0, std::nullopt}, 2, 2), alone("container", {0}, 2, 2);
  for (Host *host : {&there, &hidden, &alone}) {
    host->processes();
    EXPECT_EQ(host->said(), "nothing");
  }
}

} // namespace
