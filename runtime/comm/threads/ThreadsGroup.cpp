#include "runtime/comm/threads/ThreadsGroup.h"

#include "runtime/comm/Reduce.h"
#include "runtime/core/Error.h"

#include <cstring>

namespace ds {
namespace {

const char *reductionName(Reduction reduction) {
  switch (reduction) {
  case Reduction::Sum: return "sum";
  case Reduction::Mean: return "mean";
  case Reduction::Max: return "max";
  }
  return "?";
}

std::string nameOf(const CollectiveRequest &request) {
  return concat("all_reduce '", request.value, "' at '", request.site, "'");
}

std::string describe(const CollectiveRequest &request) {
  return concat(nameOf(request), " (", reductionName(request.reduction), " of ", request.count, " ",
                typeName(request.type), ")");
}

} // namespace

class ThreadsCommunicator : public Communicator {
public:
  ThreadsCommunicator(std::shared_ptr<ThreadsGroup> group, unsigned number) : group(std::move(group)), number(number) {}
  ~ThreadsCommunicator() override { group->leave(number, ""); }

  unsigned rank() const override { return number; }
  unsigned world() const override { return group->world(); }
  uint64_t startAllReduce(const CollectiveRequest &request) override { return group->post(number, request); }
  void wait(uint64_t ticket, void *destination) override { group->complete(number, ticket, destination); }
  void leave(const std::string &reason) override { group->leave(number, reason); }

private:
  std::shared_ptr<ThreadsGroup> group;
  unsigned number;
};

std::shared_ptr<ThreadsGroup> ThreadsGroup::create(unsigned world, std::chrono::milliseconds timeout) {
  if (world == 0)
    fail(ErrorCode::InvalidArgument, "a group needs at least one rank, found 0");
  return std::shared_ptr<ThreadsGroup>(new ThreadsGroup(world, timeout));
}

std::unique_ptr<Communicator> ThreadsGroup::join(unsigned rank) {
  if (rank >= world())
    fail(ErrorCode::InvalidArgument, "no rank ", rank, ", expected less than ", world());
  return std::make_unique<ThreadsCommunicator>(shared_from_this(), rank);
}

uint64_t ThreadsGroup::post(unsigned rank, const CollectiveRequest &request) {
  if (!canReduce(request.type))
    fail(ErrorCode::Collective, describe(request), ": cannot reduce elements of type ", typeName(request.type));
  Part part;
  part.posted = true;
  part.request = request;
  part.request.source = nullptr;
  size_t bytes = byteCount(request.type, {request.count});
  part.data.reserve(bytes);
  if (bytes != 0)
    std::memcpy(part.data.data(), request.source, bytes);

  std::lock_guard<std::mutex> lock(mutex);
  uint64_t ticket = ranks[rank].next++;
  Round &round = rounds[ticket];
  round.parts.resize(ranks.size());
  round.parts[rank] = std::move(part);
  ++round.posted;
  changed.notify_all();
  return ticket;
}

bool ThreadsGroup::someoneLeft(const Round &round) const {
  for (size_t r = 0; r < ranks.size(); ++r)
    if (!round.parts[r].posted && ranks[r].left)
      return true;
  return false;
}

void ThreadsGroup::refuseMissing(const Round &round, unsigned rank, bool timedOut) const {
  std::string missing, reasons;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (round.parts[r].posted)
      continue;
    missing += concat(missing.empty() ? "" : ", ", r);
    if (ranks[r].left)
      reasons += concat("; rank ", r, ranks[r].reason.empty() ? " has ended" : " failed: " + ranks[r].reason);
  }
  std::string when = timedOut ? concat(" in ", static_cast<double>(timeout.count()) / 1000, " s") : "";
  fail(ErrorCode::Collective, nameOf(round.parts[rank].request), ": rank ", missing, " did not arrive", when, reasons);
}

void ThreadsGroup::checkAgreement(const Round &round, unsigned rank) const {
  const CollectiveRequest &mine = round.parts[rank].request;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const CollectiveRequest &other = round.parts[r].request;
    bool agrees = other.site == mine.site && other.value == mine.value && other.type == mine.type &&
                  other.reduction == mine.reduction && other.count == mine.count;
    if (!agrees)
      fail(ErrorCode::Collective, "ranks disagree: rank ", rank, " asks for ", describe(mine), ", rank ", r, " for ",
           describe(other));
  }
}

void ThreadsGroup::complete(unsigned rank, uint64_t ticket, void *destination) {
  std::unique_lock<std::mutex> lock(mutex);
  Round &round = rounds.at(ticket); // stays in place: only the last rank to finish erases it
  bool ready = changed.wait_for(lock, timeout, [&] { return round.posted == ranks.size() || someoneLeft(round); });
  if (round.posted != ranks.size())
    refuseMissing(round, rank, !ready);
  checkAgreement(round, rank);
  lock.unlock(); // parts are complete and no longer change

  std::vector<const void *> parts;
  for (const Part &part : round.parts)
    parts.push_back(part.data.data());
  const CollectiveRequest &request = round.parts[rank].request;
  reduceParts(request.type, request.reduction, parts, request.count, destination);

  lock.lock();
  if (++round.finished == ranks.size())
    rounds.erase(ticket);
}

void ThreadsGroup::leave(unsigned rank, const std::string &reason) {
  std::lock_guard<std::mutex> lock(mutex);
  if (ranks[rank].left)
    return;
  ranks[rank].left = true;
  ranks[rank].reason = reason;
  changed.notify_all();
}

} // namespace ds
