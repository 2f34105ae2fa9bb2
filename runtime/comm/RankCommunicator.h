// The program's side of collectives over any transport: requests, waits, counters.
#ifndef DEEPSTRIDE_RUNTIME_COMM_RANKCOMMUNICATOR_H
#define DEEPSTRIDE_RUNTIME_COMM_RANKCOMMUNICATOR_H

#include "runtime/comm/Progress.h"

#include <map>
#include <thread>

namespace ds {

class RankCommunicator : public Communicator {
public:
  // The host is for messages, where there is one to name. Ranks need not be there yet.
  RankCommunicator(std::unique_ptr<Transport> transport, const std::string &host, std::chrono::milliseconds timeout,
                   bool staysOnMachine = true);
  // A world of one.
  RankCommunicator() = default;
  ~RankCommunicator() override;

  // Returns when all ranks are there.
  void awaitOthers(std::chrono::milliseconds timeout);

  unsigned rank() const override { return number; }
  unsigned world() const override { return ranks; }
  uint64_t start(const CollectiveRequest &request) override;
  void wait(uint64_t ticket) override;
  void leave(const std::string &reason) override;
  void setStep(int64_t newStep) override { step = newStep; }
  std::vector<CollectiveCounters> counters() const override;

private:
  std::string nameWithStep(const CollectiveRequest &request) const;
  size_t siteOf(const CollectiveRequest &request);
  void refuse(const std::string &name) const;

  unsigned number = 0, ranks = 1;
  int64_t step = -1;
  uint64_t nextTicket = 0;
  std::map<uint64_t, std::shared_ptr<ActiveCollective>> open;
  std::map<std::pair<std::string, CollectiveOp>, size_t> sites;
  mutable ProgressOrders orders;
  std::unique_ptr<Progress> progress; // null for a world of one
  std::thread thread;
};

} // namespace ds
#endif
