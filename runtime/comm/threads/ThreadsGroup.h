// Ranks as threads of one process: the transport for tests and debugging. Nothing is sent; every rank posts a copy of
// its part, and each waiting rank reduces all parts itself.
#ifndef DEEPSTRIDE_RUNTIME_COMM_THREADS_THREADSGROUP_H
#define DEEPSTRIDE_RUNTIME_COMM_THREADS_THREADSGROUP_H

#include "runtime/comm/Communicator.h"
#include "runtime/core/Tensor.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace ds {

class ThreadsGroup : public std::enable_shared_from_this<ThreadsGroup> {
public:
  static constexpr std::chrono::milliseconds defaultTimeout{30000};

  static std::shared_ptr<ThreadsGroup> create(unsigned world, std::chrono::milliseconds timeout = defaultTimeout);

  unsigned world() const { return static_cast<unsigned>(ranks.size()); }

  // One communicator per rank; keeps the group alive.
  std::unique_ptr<Communicator> join(unsigned rank);

private:
  friend class ThreadsCommunicator;

  struct Part {
    bool posted = false;
    CollectiveRequest request;
    AlignedBuffer data;
  };
  // The n-th collective of every rank is the same one; it is forgotten when every rank has its result.
  struct Round {
    std::vector<Part> parts;
    unsigned posted = 0, finished = 0;
  };
  struct Rank {
    uint64_t next = 0;
    bool left = false;
    std::string reason;
  };

  ThreadsGroup(unsigned world, std::chrono::milliseconds timeout) : ranks(world), timeout(timeout) {}

  uint64_t post(unsigned rank, const CollectiveRequest &request);
  void complete(unsigned rank, uint64_t ticket, void *destination);
  void leave(unsigned rank, const std::string &reason);
  void checkAgreement(const Round &round, unsigned rank) const;
  [[noreturn]] void refuseMissing(const Round &round, unsigned rank, bool timedOut) const;
  // A rank that this round needs and that has left without posting.
  bool someoneLeft(const Round &round) const;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Rank> ranks;
  std::map<uint64_t, Round> rounds;
  std::chrono::milliseconds timeout;
};

} // namespace ds
#endif
