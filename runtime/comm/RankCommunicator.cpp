#include "runtime/comm/RankCommunicator.h"

#include "runtime/core/Error.h"

#include <csignal>

namespace ds {
namespace {

int64_t clockNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Signals are for the program's threads.
template <typename Action> std::thread threadWithoutSignals(Action action) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(action);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

} // namespace

RankCommunicator::RankCommunicator(std::unique_ptr<Transport> transport, const std::string &host,
                                   std::chrono::milliseconds timeout, bool staysOnMachine)
    : number(transport->rank()), ranks(transport->world()) {
  if (ranks == 1)
    return;
  progress = std::make_unique<Progress>(std::move(transport), host, timeout, staysOnMachine, orders);
  thread = threadWithoutSignals([this] { progress->run(); });
}

RankCommunicator::~RankCommunicator() {
  if (!progress)
    return;
  leave("");
  {
    std::lock_guard<std::mutex> lock(orders.mutex);
    orders.isEnding = true;
  }
  progress->wake();
  thread.join();
}

void RankCommunicator::awaitOthers(std::chrono::milliseconds timeout) {
  if (!progress)
    return;
  std::unique_lock<std::mutex> lock(orders.mutex);
  auto missing = [&] {
    std::string names;
    for (unsigned other = 0; other < ranks; ++other)
      if (!orders.isConnected[other])
        names += concat(names.empty() ? "rank " : ", ", other);
    return names;
  };
  orders.changed.wait_for(lock, timeout, [&] { return orders.failure || missing().empty(); });
  if (orders.failure && orders.failure->isWhole)
    return; // of a collective, which this rank learns when it starts it
  if (orders.failure)
    fail(ErrorCode::Collective, orders.failure->reason);
  if (!missing().empty())
    fail(ErrorCode::Collective, missing(), " did not connect in ", static_cast<double>(timeout.count()) / 1000, " s");
}

std::string RankCommunicator::nameWithStep(const CollectiveRequest &request) const {
  return step < 0 ? nameOf(request) : concat(nameOf(request), ", step ", step);
}

size_t RankCommunicator::siteOf(const CollectiveRequest &request) {
  auto [found, isNew] = sites.try_emplace({request.site, request.op}, sites.size());
  if (isNew) {
    CollectiveCounters counters;
    counters.site = request.site;
    counters.op = collectiveName(request.op);
    std::lock_guard<std::mutex> lock(orders.mutex);
    orders.counters.push_back(std::move(counters));
  }
  return found->second;
}

// Under the mutex.
void RankCommunicator::refuse(const std::string &name) const {
  if (orders.failure && orders.failure->isWhole)
    fail(ErrorCode::Collective, orders.failure->reason);
  if (orders.failure)
    fail(ErrorCode::Collective, name, ": ", orders.failure->reason);
  if (orders.leaving)
    fail(ErrorCode::Collective, name, ": this rank has left",
         orders.leaving->empty() ? "" : ", since it failed: " + *orders.leaving);
}

uint64_t RankCommunicator::start(const CollectiveRequest &request) {
  std::string name = nameWithStep(request);
  if (std::string fault = faultOf(request, ranks); !fault.empty())
    fail(ErrorCode::Collective, name, ": ", fault);
  auto collective = std::make_shared<ActiveCollective>(request, number, ranks);
  collective->sequence = nextTicket;
  collective->name = std::move(name);
  collective->site = siteOf(request);
  if (!progress) {
    while (collective->task->advance())
      ;
    std::lock_guard<std::mutex> lock(orders.mutex);
    CollectiveCounters &counters = orders.counters[collective->site];
    ++counters.calls;
    counters.elements += collective->task->elements();
    collective->isComplete = true;
  } else {
    collective->announcement = {digestOf(request), describe(request)};
    std::lock_guard<std::mutex> lock(orders.mutex);
    refuse(collective->name);
    orders.started.push_back(collective);
  }
  open[nextTicket] = std::move(collective);
  if (progress)
    progress->wake();
  return nextTicket++;
}

void RankCommunicator::wait(uint64_t ticket) {
  auto found = open.find(ticket);
  if (found == open.end())
    fail(ErrorCode::Internal, "waits for collective ", ticket, ", which is not open");
  std::shared_ptr<ActiveCollective> collective = std::move(found->second);
  open.erase(found);
  int64_t begin = clockNow();
  collective->waitedSince.store(begin);
  std::unique_lock<std::mutex> lock(orders.mutex);
  orders.changed.wait(lock, [&] { return collective->isComplete || orders.failure || orders.leaving; });
  orders.counters[collective->site].waitNanoseconds += clockNow() - begin;
  if (!collective->isComplete)
    refuse(collective->name);
}

void RankCommunicator::leave(const std::string &reason) {
  std::unique_lock<std::mutex> lock(orders.mutex);
  if (orders.leaving)
    return;
  orders.leaving = reason;
  if (!progress)
    return;
  lock.unlock();
  progress->wake();
  lock.lock();
  orders.changed.wait(lock, [&] { return orders.hasLeft; }); // from then on its memory is left alone
}

std::vector<CollectiveCounters> RankCommunicator::counters() const {
  std::lock_guard<std::mutex> lock(orders.mutex);
  return orders.counters;
}

} // namespace ds
