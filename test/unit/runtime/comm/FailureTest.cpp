// Ranks as processes that die, are stopped or are slow: each is told apart and named by all others, and nobody hangs.
#include "test/unit/runtime/comm/Ranks.h"

#include "runtime/core/Error.h"

#include <csignal>
#include <ctime>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <thread>
#include <unistd.h>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

constexpr unsigned world = 3;
constexpr int64_t count = 50000;

// Gathers again and again; from step 5 on, one rank does something else.
RankBody trouble(unsigned culprit, const std::function<void()> &action) {
  return [culprit, action](unsigned rank, Communicator &communicator) {
    std::vector<float> whole(count), own(count / world + 1);
    CollectiveRequest request = requestOf(CollectiveOp::AllGather, whole.data(), count, world, own.data());
    request.value = "block3";
    request.site = "update";
    for (int64_t step = 0;; ++step) {
      communicator.setStep(step);
      if (step == 5 && rank == culprit)
        action();
      communicator.wait(communicator.start(request));
    }
  };
}

class Failures : public ::testing::TestWithParam<Wiring> {
protected:
  // One group for every rank that may be the culprit, all at once.
  std::vector<std::unique_ptr<RankProcesses>> groupsWith(std::chrono::milliseconds timeout,
                                                         const std::function<void()> &action) {
    std::vector<std::unique_ptr<RankProcesses>> groups;
    for (unsigned culprit = 0; culprit < world; ++culprit)
      groups.push_back(std::make_unique<RankProcesses>(GetParam(), world, timeout, trouble(culprit, action)));
    return groups;
  }

  // Every rank but the culprit says the same.
  void expect(RankProcesses &ranks, unsigned culprit, const std::string &what) {
    for (unsigned rank = 0; rank < world; ++rank)
      if (rank != culprit) {
        std::string error = ranks.errorOf(rank), start = "all_gather 'block3' at 'update', step ";
        EXPECT_EQ(error.rfind(start, 0), 0u) << error;
        EXPECT_NE(error.find(concat(": rank ", culprit, " (host ", char('a' + culprit), ") ", what)), std::string::npos)
            << error;
      }
  }
};

INSTANTIATE_TEST_SUITE_P(Wired, Failures, ::testing::Values(Wiring::SharedMemory, Wiring::Tcp),
                         [](const auto &info) { return std::string(wiringName(info.param)); });

TEST_P(Failures, ADeadRankIsNamed) {
  auto start = std::chrono::steady_clock::now();
  auto groups = groupsWith(60s, [] { raise(SIGKILL); });
  for (unsigned culprit = 0; culprit < world; ++culprit) {
    expect(*groups[culprit], culprit, "has died");
    EXPECT_EQ(groups[culprit]->errorOf(culprit), "killed");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
}

// Also by a rank that needs nothing of the dead one: at the ends of a line, and beyond a neighbour.
TEST_P(Failures, ADeadNeighbourIsNamed) {
  std::vector<std::unique_ptr<RankProcesses>> groups;
  for (unsigned culprit = 0; culprit < world; ++culprit)
    groups.push_back(
        std::make_unique<RankProcesses>(GetParam(), world, 60s, [culprit](unsigned rank, Communicator &communicator) {
          std::vector<float> whole(count), own(count);
          CollectiveRequest request = requestOf(CollectiveOp::SendRecv, whole.data(), count, 1, own.data());
          request.by = 1;
          for (int64_t step = 0;; ++step) {
            if (step == 5 && rank == culprit)
              raise(SIGKILL);
            communicator.setStep(step);
            communicator.wait(communicator.start(request));
          }
        }));
  for (unsigned culprit = 0; culprit < world; ++culprit)
    for (unsigned rank = 0; rank < world; ++rank)
      if (rank != culprit) {
        std::string error = groups[culprit]->errorOf(rank);
        EXPECT_EQ(error.rfind("send_recv 'grad' at '/loss/MatMul', step ", 0), 0u) << error;
        EXPECT_NE(error.find(concat(": rank ", culprit, " (host ", char('a' + culprit), ") has died")),
                  std::string::npos)
            << error;
      }
}

TEST_P(Failures, AStoppedRankIsNamedAndLearnsOfIt) {
  auto start = std::chrono::steady_clock::now();
  auto groups = groupsWith(60s, [] { raise(SIGSTOP); });
  for (unsigned culprit = 0; culprit < world; ++culprit)
    expect(*groups[culprit], culprit, "is stopped");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
  for (unsigned culprit = 0; culprit < world; ++culprit) {
    kill(groups[culprit]->process(culprit), SIGCONT);
    std::string error = groups[culprit]->errorOf(culprit);
    EXPECT_EQ(error.rfind("all_gather 'block3' at 'update', step 5: rank ", 0), 0u) << error;
  }
}

TEST_P(Failures, AShortStopIsForgiven) {
  RankProcesses ranks(GetParam(), world, 60s, [](unsigned, Communicator &communicator) {
    std::vector<float> values(count, 1);
    for (int step = 0; step < 40; ++step) {
      communicator.wait(communicator.start(requestOf(CollectiveOp::AllReduce, values.data(), count, world)));
      std::this_thread::sleep_for(50ms);
    }
  });
  std::this_thread::sleep_for(500ms);
  kill(ranks.process(1), SIGSTOP);
  std::this_thread::sleep_for(1500ms);
  kill(ranks.process(1), SIGCONT);
  for (unsigned rank = 0; rank < world; ++rank)
    EXPECT_EQ(ranks.errorOf(rank), "");
}

// As a job that is suspended at the terminal and continued, while one rank computes and the others wait for it.
TEST_P(Failures, AJobMaySleepAsAWhole) {
  RankProcesses ranks(GetParam(), world, 5s, [](unsigned rank, Communicator &communicator) {
    std::vector<float> values(count, 1);
    for (int step = 0; step < 20; ++step) {
      for (std::clock_t begin = std::clock(); rank == 1 && step == 1 && std::clock() - begin < CLOCKS_PER_SEC / 2;)
        ;
      communicator.wait(communicator.start(requestOf(CollectiveOp::AllReduce, values.data(), count, world)));
    }
  });
  std::this_thread::sleep_for(200ms);
  for (unsigned rank = 0; rank < world; ++rank)
    kill(ranks.process(rank), SIGSTOP);
  std::this_thread::sleep_for(7s);
  for (unsigned rank = 0; rank < world; ++rank)
    kill(ranks.process(rank), SIGCONT);
  for (unsigned rank = 0; rank < world; ++rank)
    EXPECT_EQ(ranks.errorOf(rank), "");
}

TEST_P(Failures, ASlowRankIsNamedAfterTheTimeout) {
  auto groups = groupsWith(4s, [] {
    for (volatile bool forever = true; forever;)
      ;
  });
  for (unsigned culprit = 0; culprit < world; ++culprit)
    expect(*groups[culprit], culprit, "did not arrive in 4 s");
}

// A rank that computes while another dies learns of it when it comes back.
TEST_P(Failures, ARankThatDoesNotWaitLearnsLater) {
  RankProcesses ranks(GetParam(), world, 60s, [](unsigned rank, Communicator &communicator) {
    std::vector<float> values(count, 1);
    CollectiveRequest request = requestOf(CollectiveOp::AllReduce, values.data(), count, world);
    communicator.wait(communicator.start(request));
    if (rank == 2)
      raise(SIGKILL);
    if (rank == 1)
      std::this_thread::sleep_for(3s);
    communicator.wait(communicator.start(request));
  });
  for (unsigned rank : {0u, 1u})
    EXPECT_EQ(ranks.errorOf(rank), "all_reduce 'grad' at '/loss/MatMul': rank 2 (host c) has died");
}

TEST_P(Failures, ARankThatEndsTooEarlyIsNamed) {
  RankProcesses ranks(GetParam(), world, 60s, [](unsigned rank, Communicator &communicator) {
    std::vector<float> values(count, 1);
    CollectiveRequest request = requestOf(CollectiveOp::AllReduce, values.data(), count, world);
    communicator.wait(communicator.start(request));
    if (rank == 2)
      throw std::runtime_error("no luck");
    communicator.wait(communicator.start(request));
  });
  for (unsigned rank : {0u, 1u})
    EXPECT_EQ(ranks.errorOf(rank),
              "all_reduce 'grad' at '/loss/MatMul': rank 2 (host c) did not arrive; rank 2 has ended");
  EXPECT_EQ(ranks.errorOf(2), "no luck");
}

// What a rank on another machine would say: another boot id, as a file that only this process sees in its place.
void moveToOtherMachine(unsigned rank) {
  if (rank != 1)
    return;
  std::string file = "/tmp/ds-boot-id-" + std::to_string(getpid());
  std::ofstream(file) << "11111111-2222-3333-4444-555555555555\n";
  bool isMoved = unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 mount(file.c_str(), "/proc/sys/kernel/random/boot_id", nullptr, MS_BIND, nullptr) == 0;
  unlink(file.c_str());
  if (!isMoved)
    throw std::runtime_error("not permitted");
}

TEST(Connect, RefusesOtherMachinesAndNamesTheEngine) {
  RankProcesses ranks(
      Wiring::Tcp, 2, 30s,
      [](unsigned, Communicator &communicator) {
        float value = 1;
        communicator.wait(communicator.start(requestOf(CollectiveOp::AllReduce, &value, 1, 2)));
      },
      moveToOtherMachine);
  std::string first = ranks.errorOf(0), second = ranks.errorOf(1);
  if (second == "not permitted")
    GTEST_SKIP() << "a mount namespace needs privileges";
  // Each says it of the other, or has heard from the other first.
  for (const std::string &error : {first, second}) {
    EXPECT_NE(error.find("runs on another machine than rank"), std::string::npos) << error;
    EXPECT_NE(error.find("expected --transport=mpi"), std::string::npos) << error;
  }
}

} // namespace
