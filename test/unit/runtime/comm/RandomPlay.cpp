#include "test/unit/runtime/comm/RandomPlay.h"

#include "test/unit/runtime/comm/RandomCollective.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <map>

namespace ds::test {
namespace {

struct Expected {
  int64_t calls = 0, elements = 0;
  uint64_t sent = 0, received = 0;
};

void check(bool isRight, const std::string &what) {
  if (!isRight)
    throw std::runtime_error(what);
}

} // namespace

void playRandom(Communicator &communicator, uint32_t seed, int rounds, int64_t largestShard) {
  unsigned rank = communicator.rank(), world = communicator.world();
  std::mt19937 common(seed), own(seed + 1 + rank);
  std::map<std::pair<std::string, int>, Expected> expected;
  for (int round = 0; round < rounds; ++round) {
    std::vector<RandomCollective> collectives;
    std::vector<RandomCollective::Memory> memories;
    std::vector<uint64_t> tickets;
    for (unsigned i = common() % 5 + 1; i > 0; --i)
      collectives.emplace_back(common, world, largestShard);
    for (RandomCollective &collective : collectives)
      memories.push_back(collective.memoryOf(rank));
    for (size_t i = 0; i < collectives.size(); ++i) {
      tickets.push_back(communicator.start(memories[i].request));
      Expected &counters = expected[{collectives[i].site, int(collectives[i].op)}];
      ++counters.calls;
      counters.elements += collectives[i].elements();
      counters.sent += collectives[i].sentBytes(rank);
      counters.received += collectives[i].receivedBytes(rank);
    }
    std::vector<size_t> order(tickets.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), own);
    for (size_t i : order) {
      communicator.wait(tickets[i]);
      std::string fault = collectives[i].faultOf(memories[i], rank);
      check(fault.empty(), concat("round ", round, ": ", fault));
    }
  }
  const char *names[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "send_recv"};
  std::vector<CollectiveCounters> found = communicator.counters();
  check(found.size() == expected.size(), "number of counters");
  for (const auto &[key, right] : expected)
    check(std::any_of(found.begin(), found.end(),
                      [&, &key = key, &right = right](const CollectiveCounters &counters) {
                        return counters.site == key.first && counters.op == names[key.second] &&
                               counters.calls == right.calls && counters.elements == right.elements &&
                               counters.sentBytes == right.sent && counters.receivedBytes == right.received;
                      }),
          concat("counters of ", names[key.second], " at ", key.first));
}

} // namespace ds::test
