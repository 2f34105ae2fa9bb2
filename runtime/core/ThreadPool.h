// N threads, the caller included, that run one task at a time. Waiting threads spin for a short while, since launches
// follow each other closely, and sleep after that.
#ifndef DEEPSTRIDE_RUNTIME_CORE_THREADPOOL_H
#define DEEPSTRIDE_RUNTIME_CORE_THREADPOOL_H

#include "runtime/core/Tensor.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ds {

struct WorkRange {
  int64_t begin = 0, end = 0;
};

// The part of [0, grid) that one of count threads takes: depends on nothing but the arguments, its bounds are multiples
// of grain (or the grid's end).
WorkRange staticChunk(int64_t grid, int64_t grain, unsigned thread, unsigned count);

class ThreadPool {
public:
  using Task = void (*)(void *context, unsigned thread);

  explicit ThreadPool(unsigned threads); // at least 1; throws Error(OutOfMemory) when the system refuses
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  unsigned size() const { return count; }

  // Calls task(context, t) once for every t in [0, active) and returns when all are done. Task 0 is the caller's, who
  // also takes those that their threads have not begun by then. One call at a time; a task starts none.
  void run(Task task, void *context, unsigned active);

  // Memory of the thread's own; grown outside kernels only, so call it before run().
  uint8_t *scratch(unsigned thread, size_t bytes);

  // DS_NUM_THREADS, else the number of processors this process may use. Throws Error(InvalidArgument) where the
  // variable is no number of 1 to 1024; empty, it is as if it were not there.
  static unsigned defaultThreads();

private:
  struct Worker;

  unsigned count;
  std::vector<std::unique_ptr<Worker>> workers; // of threads 1..count-1
  std::vector<AlignedBuffer> scratches;
  Task task = nullptr;
  void *context = nullptr;
};

} // namespace ds
#endif
