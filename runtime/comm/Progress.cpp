#include "runtime/comm/Progress.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cstring>

namespace ds {
namespace {

using namespace std::chrono_literals;

// Messages of one peer before others have their turn.
constexpr int messagesAtOnce = 4;
// For what is still under way when a rank ends, and for the others to close their ends.
constexpr int64_t endingNanoseconds = 5'000'000'000, failedNanoseconds = 500'000'000;

int64_t clockNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

Progress::Progress(std::unique_ptr<Transport> given, std::string host, std::chrono::milliseconds timeout,
                   bool staysOnMachine, ProgressOrders &orders)
    : transport(std::move(given)), timeout(timeout), staysOnMachine(staysOnMachine), orders(orders),
      peers(transport->world()), now(clockNow()) {
  orders.isConnected.assign(transport->world(), false);
  orders.isConnected[transport->rank()] = true;
  peers[transport->rank()].host = host;
  for (unsigned number = 0; number < peers.size(); ++number)
    if (isLinked(number))
      writeControl(peers[number], {ControlKind::Hello, 0, helloText(transport->world(), host)});
}

void Progress::run() {
  auto longest = std::min<std::chrono::nanoseconds>(100ms, timeout / 4);
  for (bool isOpen = true; isOpen;) {
    bool hasMoved = false;
    try {
      hasMoved = takeOrders();
      hasMoved |= turn();
      watch();
    } catch (const std::exception &error) {
      failWith(concat("rank ", transport->rank(), ": ", error.what()), false);
    }
    if (hasEnded())
      isOpen =
          !transport->close(!hasFailed) && now - endingSince < 2 * (hasFailed ? failedNanoseconds : endingNanoseconds);
    if (!hasMoved && isOpen)
      transport->pause(std::max(std::chrono::duration_cast<std::chrono::microseconds>(longest), 100us));
  }
}

bool Progress::takeOrders() {
  std::deque<std::shared_ptr<ActiveCollective>> started;
  std::optional<std::string> reason;
  {
    std::lock_guard<std::mutex> lock(orders.mutex);
    started.swap(orders.started);
    if (orders.leaving && !hasLeft)
      reason = orders.leaving;
    if (orders.isEnding && endingSince == 0)
      endingSince = clockNow();
  }
  for (const auto &collective : started)
    activate(collective);
  if (reason)
    leave(*reason);
  return !started.empty() || reason;
}

void Progress::activate(const std::shared_ptr<ActiveCollective> &collective) {
  if (hasFailed || hasLeft)
    return;
  collective->hasAgreed.assign(peers.size(), false);
  collective->hasAgreed[transport->rank()] = true;
  active.push_back(collective);
  numStarted = collective->sequence + 1;
  for (unsigned number = 0; number < peers.size(); ++number)
    if (isLinked(number))
      writeControl(peers[number],
                   {ControlKind::Announce, collective->sequence, announcementText(collective->announcement)});
  for (unsigned number = 0; number < peers.size() && !hasFailed; ++number)
    if (Peer &peer = peers[number]; !peer.unseen.empty()) {
      Announcement other = std::move(peer.unseen.front());
      peer.unseen.pop_front();
      agree(*collective, number, other);
    }
}

void Progress::leave(const std::string &reason) {
  uint64_t completed = active.empty() ? numStarted : active.front()->sequence;
  active.clear();
  hasLeft = true;
  for (unsigned number = 0; number < peers.size(); ++number)
    if (isLinked(number))
      writeControl(peers[number], {ControlKind::Left, completed, reason});
  std::lock_guard<std::mutex> lock(orders.mutex);
  orders.hasLeft = true;
  orders.changed.notify_all();
}

bool Progress::turn() {
  now = clockNow();
  bool hasMoved = false;
  // Each rank begins behind itself, so that not all of them send to the same one.
  for (unsigned i = 1; i < peers.size(); ++i) {
    unsigned number = (transport->rank() + i) % static_cast<unsigned>(peers.size());
    if (!isLinked(number))
      continue;
    hasMoved |= flushControl(*transport, number, peers[number]);
    hasMoved |= receiveControl(number);
    bool hasMovedData = false;
    for (Phase phase : {Phase::FromOwner, Phase::ToOwner}) {
      hasMovedData |= receiveData(number, phase);
      hasMovedData |= sendData(number, phase);
    }
    if (hasMovedData)
      dataMoved = now;
    hasMoved |= hasMovedData;
  }
  for (size_t i = 0; i < active.size(); ++i)
    hasMoved |= active[i]->task->advance();
  return completeDone() || hasMoved;
}

ActiveCollective *Progress::find(uint64_t sequence) {
  for (const auto &collective : active)
    if (collective->sequence == sequence)
      return collective.get();
  return nullptr;
}

bool Progress::receiveControl(unsigned number) {
  Peer &peer = peers[number];
  if (!fillControl(*transport, number, peer)) {
    if (!transport->isClosed(number, Channel::Control))
      return false;
    if (!peer.completed)
      failWith(peerText(number) + " has died", false);
    // After a normal end, data may still be under way.
    peer.isGone = !peer.completed ||
                  (transport->isClosed(number, Channel::ToOwner) && transport->isClosed(number, Channel::FromOwner));
    return peer.isGone;
  }
  peer.heard = now;
  peer.stopped = 0;
  while (auto message = readControl(peer))
    handle(number, *message);
  return true;
}

void Progress::handle(unsigned number, const ControlMessage &message) {
  Peer &peer = peers[number];
  switch (message.kind) {
  case ControlKind::Hello: return greet(number, message.text);
  case ControlKind::Beat: return;
  case ControlKind::Failed: return failWith(message.text, message.number != 0);
  case ControlKind::Left:
    peer.completed = message.number;
    peer.reason = message.text;
    nextWatch = 0; // someone may be waiting for it
    return;
  case ControlKind::Announce: {
    peer.announced = message.number + 1;
    Announcement other = readAnnouncement(message.text);
    if (ActiveCollective *mine = find(message.number))
      agree(*mine, number, other);
    else if (message.number >= numStarted)
      peer.unseen.push_back(std::move(other));
    return;
  }
  }
  failWith(peerText(number) + " sent a message of an unknown kind", false);
}

void Progress::greet(unsigned number, const std::string &text) {
  Peer &peer = peers[number];
  std::string fault = readHello(text, static_cast<unsigned>(peers.size()), peer);
  if (fault.empty() && staysOnMachine && peer.process.boot != thisProcess().boot)
    fault = concat("runs on another machine than rank ", transport->rank(), "; expected --transport=mpi");
  if (!fault.empty())
    failWith(concat(peerText(number), " ", fault), false);
  std::lock_guard<std::mutex> lock(orders.mutex);
  orders.isConnected[number] = true;
  orders.changed.notify_all();
}

void Progress::agree(ActiveCollective &mine, unsigned number, const Announcement &other) {
  if (mine.announcement.digest == other.digest && mine.announcement.text == other.text) {
    mine.hasAgreed[number] = true;
    return;
  }
  unsigned rank = transport->rank();
  const Announcement &lower = number < rank ? other : mine.announcement;
  const Announcement &higher = number < rank ? mine.announcement : other;
  std::string step = mine.name.substr(std::min(mine.name.size(), mine.name.find(", step ")));
  failWith(concat("ranks disagree", step, ": rank ", std::min(rank, number), " asks for ", lower.text, ", rank ",
                  std::max(rank, number), " for ", higher.text),
           true);
}

bool Progress::receiveData(unsigned number, Phase phase) {
  DataStream &from = peers[number].stream(phase);
  bool hasMoved = false;
  auto take = [&](void *data, size_t bytes, size_t &done) {
    size_t taken = transport->receive(number, channelOf(phase), static_cast<uint8_t *>(data) + done, bytes - done);
    done += taken;
    hasMoved |= taken > 0;
    return done == bytes;
  };
  for (int message = 0; message < messagesAtOnce && !from.isGarbled; ++message) {
    if (from.headerReceived < sizeof(DataHeader) && !take(&from.header, sizeof(DataHeader), from.headerReceived))
      break;
    if (from.header.bytes > CollectiveTask::chunkBytes(static_cast<unsigned>(peers.size()))) {
      failWith(peerText(number) + " sent a message that is too long", false);
      from.isGarbled = true;
      break;
    }
    ActiveCollective *collective = find(from.header.sequence);
    bool isDropped = hasFailed || hasLeft;
    if (!isDropped && (!collective || !collective->task->expects(number, phase, from.header))) {
      failWith(peerText(number) + " sent a message that nobody waits for", false);
      isDropped = true;
    }
    if (!isDropped && !collective->task->hasRoom(number, phase, from.header))
      break;
    from.in.resize(from.header.bytes);
    if (!take(from.in.data(), from.header.bytes, from.received))
      break;
    from.headerReceived = from.received = 0;
    if (!isDropped)
      collective->task->take(number, phase, from.in);
  }
  return hasMoved;
}

bool Progress::sendData(unsigned number, Phase phase) {
  Payload &out = peers[number].stream(phase).out;
  bool hasMoved = flushData(*transport, number, peers[number], phase);
  // What others wait for in older collectives has the link first.
  bool isLater = phase == Phase::ToOwner && !peers[number].stream(Phase::FromOwner).out.empty();
  for (int message = 0; message < messagesAtOnce && out.empty() && !isLater; ++message) {
    DataHeader header;
    if (!nextBrief(number, phase, header) && !nextOldest(number, phase, header))
      break;
    std::memcpy(out.data(), &header, sizeof(header));
    hasMoved |= flushData(*transport, number, peers[number], phase);
  }
  return hasMoved;
}

// What is small does not wait behind parameters that are still on their way: the program does nothing meanwhile.
bool Progress::nextBrief(unsigned number, Phase phase, DataHeader &header) {
  Payload &out = peers[number].stream(phase).out;
  for (const auto &collective : active) {
    if (!collective->hasAgreed[number])
      return false; // nor has it started any later one
    header.sequence = collective->sequence;
    if (collective->task->isBrief() && collective->task->next(number, phase, header, out, sizeof(header)))
      return true;
  }
  return false;
}

bool Progress::nextOldest(unsigned number, Phase phase, DataHeader &header) {
  Payload &out = peers[number].stream(phase).out;
  for (const auto &collective : active) {
    if (!collective->hasAgreed[number])
      return false;
    header.sequence = collective->sequence;
    if (collective->task->next(number, phase, header, out, sizeof(header)))
      return true;
    if (phase == Phase::ToOwner && collective->task->holdsBack(number))
      return false;
  }
  return false;
}

bool Progress::completeDone() {
  bool isAnyDone = false;
  for (auto collective = active.begin(); collective != active.end();) {
    const std::vector<bool> &agreed = (*collective)->hasAgreed;
    if (!(*collective)->task->isDone() || !std::all_of(agreed.begin(), agreed.end(), [](bool has) { return has; })) {
      ++collective;
      continue;
    }
    std::lock_guard<std::mutex> lock(orders.mutex);
    CollectiveCounters &counters = orders.counters[(*collective)->site];
    ++counters.calls;
    counters.elements += (*collective)->task->elements();
    counters.sentBytes += (*collective)->task->sentBytes();
    counters.receivedBytes += (*collective)->task->receivedBytes();
    (*collective)->isComplete = true;
    orders.changed.notify_all();
    collective = active.erase(collective);
    isAnyDone = true;
  }
  return isAnyDone;
}

void Progress::failWith(const std::string &reason, bool isWhole) {
  if (hasFailed)
    return;
  hasFailed = true;
  active.clear();
  for (unsigned number = 0; number < peers.size(); ++number)
    if (isLinked(number))
      writeControl(peers[number], {ControlKind::Failed, isWhole ? 1u : 0u, reason});
  std::lock_guard<std::mutex> lock(orders.mutex);
  orders.failure = CollectiveFailure{reason, isWhole};
  orders.changed.notify_all();
}

// A rank that ends lets what it has sent get out first, but waits for nobody who does not read.
bool Progress::hasEnded() {
  if (endingSince == 0 || !hasLeft)
    return false;
  if (now - endingSince > (hasFailed ? failedNanoseconds : endingNanoseconds))
    return true;
  for (unsigned number = 0; number < peers.size(); ++number)
    if (Peer &peer = peers[number]; isLinked(number) && !peer.completed)
      if (bool hasData = !peer.stream(Phase::ToOwner).out.empty() || !peer.stream(Phase::FromOwner).out.empty();
          !peer.controlOut.empty() || (!hasFailed && hasData))
        return false;
  return true;
}

} // namespace ds
