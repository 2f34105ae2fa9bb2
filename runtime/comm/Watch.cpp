// How a rank tells others that are dead, stopped or slow apart. All ranks send beats. One that is silent is looked up
// with the kernel where it can be seen from here: it may be stopped, gone, or merely get no processor. One that beats
// but does not arrive is slow, and becomes a failure after the timeout only.
#include "runtime/comm/Progress.h"

#include "runtime/core/Error.h"

#include <algorithm>

namespace ds {
namespace {

constexpr int64_t millisecond = 1'000'000;
constexpr int64_t beatEvery = 400 * millisecond, watchEvery = 200 * millisecond;
// Silence that makes suspicious, and the time that a stopped rank has to be continued.
constexpr int64_t suspiciousAfter = 1200 * millisecond, stoppedFor = 1200 * millisecond;
// Silence of a rank that cannot be seen from here.
constexpr int64_t silentFor = 4000 * millisecond;
// This process itself got no processor, or was stopped, for so long: what it has not heard says nothing.
constexpr int64_t absentFor = 1000 * millisecond;

} // namespace

std::string Progress::peerText(unsigned number) const {
  const Peer &peer = peers[number];
  return concat("rank ", number, peer.host.empty() ? "" : " (host " + peer.host + ")");
}

bool Progress::isWatched(unsigned number) const {
  const Peer &peer = peers[number];
  return isLinked(number) && peer.isConnected && !peer.isThread && !peer.completed;
}

void Progress::beat() {
  if (now < nextBeat || hasLeft)
    return;
  nextBeat = now + beatEvery;
  for (unsigned number = 0; number < peers.size(); ++number)
    if (isWatched(number) && peers[number].controlOut.empty())
      writeControl(peers[number], {ControlKind::Beat, 0, ""});
}

void Progress::watch() {
  beat();
  if (now < nextWatch || hasFailed || hasLeft)
    return;
  int64_t absent = now - lastWatch - watchEvery;
  if (lastWatch != 0 && absent > absentFor) {
    for (Peer &peer : peers)
      peer.heard += peer.heard != 0 ? absent : 0;
    excused = now;
  }
  lastWatch = now;
  nextWatch = now + std::min(watchEvery, timeout.count() / 4);
  for (unsigned number = 0; number < peers.size() && !hasFailed; ++number)
    if (isWatched(number))
      watchPeer(number);
  if (!hasFailed)
    watchWaits();
}

void Progress::watchPeer(unsigned number) {
  Peer &peer = peers[number];
  if (now - peer.heard < suspiciousAfter)
    return;
  switch (stateOf(peer.process)) {
  case ProcessState::Gone: return failWith(peerText(number) + " has died", false);
  case ProcessState::Running: peer.stopped = 0; return;
  case ProcessState::Unknown:
    if (now - peer.heard > silentFor && !active.empty())
      failWith(peerText(number) + " is stopped or cannot be reached", false);
    return;
  case ProcessState::Stopped:
    if (peer.stopped == 0)
      peer.stopped = now;
    if (now - peer.stopped > stoppedFor && !active.empty())
      failWith(peerText(number) + " is stopped", false);
    return;
  }
}

// Those who left, and after the timeout those who are late.
std::string Progress::missingText(const ActiveCollective &collective, bool isLate) const {
  std::string missing, reasons;
  std::string when = isLate ? concat(" in ", static_cast<double>(timeout.count()) / 1e9, " s") : "";
  for (unsigned number = 0; number < peers.size(); ++number) {
    const Peer &peer = peers[number];
    bool hasLeftIt = peer.completed && collective.sequence >= *peer.completed;
    if (!hasLeftIt && (!isLate || collective.hasAgreed[number]))
      continue;
    missing += concat(missing.empty() ? "rank " : ", ", peerText(number).substr(5));
    if (hasLeftIt)
      reasons += concat("; rank ", number, peer.reason.empty() ? " has ended" : " failed: " + peer.reason);
  }
  return missing.empty() ? "" : concat(missing, " did not arrive", when, reasons);
}

void Progress::watchWaits() {
  for (const auto &collective : active) {
    if (std::string left = missingText(*collective, false); !left.empty())
      return failWith(left, false);
    int64_t since = collective->waitedSince.load();
    if (since == 0 || now - std::max(since, excused) < timeout.count())
      continue;
    if (std::string missing = missingText(*collective, true); !missing.empty())
      return failWith(missing, false);
    if (now - std::max(dataMoved, excused) < timeout.count())
      continue;
    for (unsigned number = 0; number < peers.size(); ++number)
      if (number != transport->rank() && collective->task->expectsMoreFrom(number))
        return failWith(concat("no data has come from ", peerText(number), " to ", peerText(transport->rank()), " for ",
                               static_cast<double>(timeout.count()) / 1e9, " s"),
                        false);
  }
}

} // namespace ds
