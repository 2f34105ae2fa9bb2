// The thread that moves the data of one rank's collectives, and watches over the other ranks.
#ifndef DEEPSTRIDE_RUNTIME_COMM_PROGRESS_H
#define DEEPSTRIDE_RUNTIME_COMM_PROGRESS_H

#include "runtime/comm/PeerStreams.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace ds {

// From its start until it is complete. The program's thread reads what is fixed at the start, and isComplete under the
// mutex; the rest belongs to the thread that moves data.
struct ActiveCollective {
  ActiveCollective(const CollectiveRequest &request, unsigned rank, unsigned world)
      : task(makeTask(request, rank, world, CollectiveTask::chunkBytes(world))) {}

  uint64_t sequence = 0;
  std::string name; // with the step
  size_t site = 0;  // of its counters
  Announcement announcement;
  std::unique_ptr<CollectiveTask> task;
  std::vector<bool> hasAgreed; // by rank
  std::atomic<int64_t> waitedSince{0};
  bool isComplete = false;
};

// Why no collective completes any more.
struct CollectiveFailure {
  std::string reason;
  bool isWhole = false; // the message says itself which collective
};

// Between the program's thread and the one that moves data.
struct ProgressOrders {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<ActiveCollective>> started;
  std::vector<CollectiveCounters> counters;
  std::optional<CollectiveFailure> failure;
  std::optional<std::string> leaving;
  bool hasLeft = false, isEnding = false;
  std::vector<bool> isConnected; // by rank
};

class Progress {
public:
  Progress(std::unique_ptr<Transport> transport, std::string host, std::chrono::milliseconds timeout,
           bool staysOnMachine, ProgressOrders &orders);

  void run();
  void wake() { transport->wake(); }

private:
  bool takeOrders();
  void activate(const std::shared_ptr<ActiveCollective> &collective);
  void leave(const std::string &reason);
  bool turn();
  bool receiveControl(unsigned number);
  void handle(unsigned number, const ControlMessage &message);
  void greet(unsigned number, const std::string &text);
  void compare(const ActiveCollective &mine, unsigned number, const Announcement &other);
  void agree(ActiveCollective &mine, unsigned number, const Announcement &other);
  bool receiveData(unsigned number, Phase phase);
  bool sendData(unsigned number, Phase phase);
  bool nextBrief(unsigned number, Phase phase, DataHeader &header);
  bool nextOldest(unsigned number, Phase phase, DataHeader &header);
  bool completeDone();
  ActiveCollective *find(uint64_t sequence);

  // Watching (Watch.cpp).
  void beat();
  void watch();
  bool isWatched(unsigned number) const;
  void watchPeer(unsigned number);
  void watchWaits();
  std::string missingText(const ActiveCollective &collective, bool isLate) const;
  std::string peerText(unsigned number) const;

  void failWith(const std::string &reason, bool isWhole);
  bool hasEnded();
  bool isLinked(unsigned number) const { return number != transport->rank() && !peers[number].isGone; }

  std::unique_ptr<Transport> transport;
  std::chrono::nanoseconds timeout;
  bool staysOnMachine; // refuses ranks of other machines
  ProgressOrders &orders;
  std::vector<Peer> peers;
  std::deque<std::shared_ptr<ActiveCollective>> active; // in the order of their starts
  uint64_t numStarted = 0;
  bool hasFailed = false, hasLeft = false;
  int64_t now = 0, nextBeat = 0, nextWatch = 0, lastWatch = 0, endingSince = 0;
  int64_t dataMoved = 0; // the last time
  int64_t excused = 0;   // the last time that this process was found to have been away
};

} // namespace ds
#endif
