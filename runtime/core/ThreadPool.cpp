#include "runtime/core/ThreadPool.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <sched.h>
#include <system_error>
#include <thread>

namespace ds {
namespace {

// Launches follow each other within microseconds, and waking a sleeping thread costs fifty: so spin for a while first.
constexpr unsigned pausesBeforeYield = 100; // two to five microseconds
constexpr std::chrono::microseconds spinTime{1000};

// Spins until the condition holds or the time is over. Yields after the first microseconds: when the scheduler has put
// both threads on one processor, or others need it too, spinning alone would wait for itself.
template <typename Condition> bool spinUntil(Condition condition, bool isPatient) {
  for (unsigned i = 0; i < pausesBeforeYield; ++i) {
    if (condition())
      return true;
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  }
  auto start = std::chrono::steady_clock::now();
  while (!condition()) {
    if (!isPatient && std::chrono::steady_clock::now() - start > spinTime)
      return false;
    std::this_thread::yield();
  }
  return true;
}

} // namespace

// Tickets count tasks. The caller writes `posted`; whoever moves `taken` to that ticket runs the task, and the worker
// answers in `done`. What the caller writes for each task and what the worker does have cache lines of their own.
struct ThreadPool::Worker {
  alignas(64) std::atomic<uint64_t> posted{0};
  std::atomic<bool> sleeping{false}, stop{false};
  alignas(64) std::atomic<uint64_t> taken{0}, done{0};
  std::mutex mutex;
  std::condition_variable wake;
  std::thread thread;

  void post() {
    posted.fetch_add(1); // sequentially consistent with the worker's `sleeping`: one of both sees the other
    if (!sleeping.load())
      return;
    std::lock_guard<std::mutex> lock(mutex);
    wake.notify_one();
  }

  // The newest ticket, as soon as it is not the one that was seen.
  uint64_t await(uint64_t seen) {
    if (!spinUntil([&] { return posted.load(std::memory_order_acquire) != seen; }, false)) {
      std::unique_lock<std::mutex> lock(mutex);
      sleeping.store(true);
      wake.wait(lock, [&] { return posted.load() != seen; });
      sleeping.store(false);
    }
    return posted.load(std::memory_order_acquire);
  }

  // Whether the task of the ticket is the calling thread's. No ticket follows before one of both has taken this one.
  bool take(uint64_t ticket) {
    uint64_t before = ticket - 1;
    return taken.compare_exchange_strong(before, ticket, std::memory_order_acq_rel);
  }
};

WorkRange staticChunk(int64_t grid, int64_t grain, unsigned thread, unsigned count) {
  grain = std::max<int64_t>(grain, 1);
  int64_t units = grid / grain + (grid % grain != 0);
  int64_t share = units / count, extra = units % count; // the first `extra` threads take one unit more
  auto start = [&](int64_t t) { return t * share + std::min(t, extra); };
  auto item = [&](int64_t unit) { return unit >= units ? grid : unit * grain; };
  return {item(start(thread)), item(start(thread + 1))};
}

ThreadPool::ThreadPool(unsigned threads) : count(std::max(threads, 1u)), scratches(count) {
  for (unsigned t = 1; t < count; ++t) {
    workers.push_back(std::make_unique<Worker>());
    Worker *worker = workers.back().get();
    auto body = [this, worker, t] {
      for (uint64_t ticket = 0;;) {
        ticket = worker->await(ticket);
        if (worker->stop.load())
          return;
        if (!worker->take(ticket))
          continue;
        task(context, t);
        worker->done.store(ticket, std::memory_order_release);
      }
    };
    try {
      worker->thread = std::thread(body);
    } catch (const std::system_error &error) {
      workers.pop_back();
      for (auto &started : workers) {
        started->stop = true;
        started->post();
        started->thread.join();
      }
      fail(ErrorCode::OutOfMemory, "cannot start thread ", t, " of ", count, ": ", error.what());
    }
  }
}

ThreadPool::~ThreadPool() {
  for (auto &worker : workers) {
    worker->stop = true;
    worker->post();
  }
  for (auto &worker : workers)
    worker->thread.join();
}

void ThreadPool::run(Task newTask, void *newContext, unsigned active) {
  active = std::min(active, count);
  task = newTask;
  context = newContext;
  for (unsigned t = 1; t < active; ++t)
    workers[t - 1]->post();
  if (active > 0)
    task(context, 0);
  for (unsigned t = 1; t < active; ++t) {
    Worker &worker = *workers[t - 1];
    uint64_t ticket = worker.posted.load(std::memory_order_relaxed);
    if (worker.take(ticket)) // it sleeps, or other work has its processor, perhaps for milliseconds
      task(context, t);
    else
      spinUntil([&] { return worker.done.load(std::memory_order_acquire) == ticket; }, true);
  }
}

uint8_t *ThreadPool::scratch(unsigned thread, size_t bytes) {
  scratches[thread].reserve(bytes);
  return scratches[thread].data();
}

unsigned ThreadPool::defaultThreads() {
  constexpr unsigned most = 1024;
  if (const char *text = std::getenv("DS_NUM_THREADS"); text && *text) {
    std::string digits = text;
    bool isNumber = digits.size() <= 9 && digits.find_first_not_of("0123456789") == std::string::npos;
    unsigned long value = isNumber ? std::stoul(digits) : 0;
    if (value < 1 || value > most)
      fail(ErrorCode::InvalidArgument, "DS_NUM_THREADS: expected a number of 1 to ", most, ", found ",
           inQuotes(digits));
    return static_cast<unsigned>(value);
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

} // namespace ds
