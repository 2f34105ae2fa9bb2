// Threads that share tasks, with and without processors for them.
#include "runtime/core/ThreadPool.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <pthread.h>
#include <thread>
#include <vector>

using namespace ds;

namespace {

TEST(ThreadPool, RunsEveryThreadOnceEveryTime) {
  for (unsigned threads : {1u, 2u, 5u}) {
    ThreadPool pool(threads);
    std::vector<std::atomic<int>> counts(threads);
    auto task = [](void *context, unsigned thread) {
      ++(*static_cast<std::vector<std::atomic<int>> *>(context))[thread];
    };
    for (int i = 0; i < 200; ++i) {
      pool.run(task, &counts, threads);
      if (i % 50 == 0) // long enough to fall asleep
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pool.run(task, &counts, 1);
    for (unsigned t = 0; t < threads; ++t)
      EXPECT_EQ(counts[t], t == 0 ? 201 : 200);
  }
}

TEST(ThreadPool, GivesEveryThreadItsOwnAlignedScratch) {
  ThreadPool pool(3);
  uint8_t *first = pool.scratch(0, 100), *second = pool.scratch(1, 100);
  EXPECT_NE(first, second);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(pool.scratch(0, 50), first);
}

// A thread stops wherever it is, as when the scheduler gives its processor to another process, until it may go on.
std::atomic<bool> isStopped{false}, mayGoOn{false};
void stopHere(int) {
  isStopped = true;
  while (!mayGoOn)
    ;
}

struct Meeting {
  std::atomic<bool> hasBegun{false};
  bool isAwaited = true; // task 0 waits for task 1, so that the caller cannot take both
  pthread_t threads[2];

  static void task(void *context, unsigned thread) {
    auto &meeting = *static_cast<Meeting *>(context);
    meeting.threads[thread] = pthread_self();
    if (thread == 1)
      meeting.hasBegun = true;
    while (thread == 0 && meeting.isAwaited && !meeting.hasBegun)
      std::this_thread::yield();
  }
};

TEST(ThreadPool, TakesTasksOfThreadsThatHaveNoProcessor) {
  auto *before = std::signal(SIGUSR1, stopHere);
  {
    ThreadPool pool(2);
    Meeting first, alone, last;
    pool.run(Meeting::task, &first, 2);
    ASSERT_FALSE(pthread_equal(first.threads[1], pthread_self()));
    isStopped = mayGoOn = false;
    ASSERT_EQ(pthread_kill(first.threads[1], SIGUSR1), 0);
    while (!isStopped)
      std::this_thread::yield();
    alone.isAwaited = false;
    for (int i = 0; i < 3; ++i) {
      alone.hasBegun = false;
      pool.run(Meeting::task, &alone, 2);
      EXPECT_TRUE(alone.hasBegun);
      EXPECT_TRUE(pthread_equal(alone.threads[1], pthread_self()));
    }
    mayGoOn = true;
    pool.run(Meeting::task, &last, 2);
    EXPECT_TRUE(pthread_equal(last.threads[1], first.threads[1]));
  }
  std::signal(SIGUSR1, before);
}

} // namespace
