// Ranks as threads of one process.
#ifndef DEEPSTRIDE_RUNTIME_COMM_THREADS_THREADRANKS_H
#define DEEPSTRIDE_RUNTIME_COMM_THREADS_THREADRANKS_H

#include "runtime/comm/Communicator.h"

#include <chrono>
#include <memory>

namespace ds {

class SharedSegment;

class ThreadRanks {
public:
  static constexpr std::chrono::milliseconds defaultTimeout{30000};

  explicit ThreadRanks(unsigned world, std::chrono::milliseconds timeout = defaultTimeout);

  unsigned world() const { return ranks; }

  // One communicator per rank, which may outlive this; does not wait for the others to join.
  std::unique_ptr<Communicator> join(unsigned rank);

private:
  unsigned ranks;
  std::chrono::milliseconds timeout;
  std::shared_ptr<SharedSegment> segment;
};

} // namespace ds
#endif
