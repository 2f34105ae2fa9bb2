#include "test/unit/runtime/comm/OneBitPlay.h"

#include "test/unit/runtime/comm/OneBitOracle.h"
#include "test/unit/runtime/comm/RandomCollective.h"

#include <stdexcept>

namespace ds::test {
namespace {

void check(bool isRight, const std::string &what) {
  if (!isRight)
    throw std::runtime_error(what);
}

// The parts of one collective.
template <typename T> class Spaces {
public:
  Spaces(std::mt19937 &common, Communicator &communicator, int64_t largestShard) : communicator(communicator) {
    for (unsigned i = common() % 4 + 1; i > 0; --i)
      oracles.emplace_back(common, communicator.world(), largestShard);
    for (OneBitOracle<T> &oracle : oracles)
      memories.emplace_back(oracle, communicator.rank());
    site = sizeof(T) == 8 ? "/wide" : "/narrow";
  }

  void start(std::mt19937 &common) {
    CollectiveRequest request = oneBitRequest<T>();
    request.site = site;
    for (size_t i = 0; i < oracles.size(); ++i) {
      oracles[i].drawInputs(common);
      oracles[i].step();
      memories[i].load(oracles[i]);
      request.parts.push_back(memories[i].part(oracles[i]));
      sent += oracles[i].sentBytes();
      elements += oracles[i].size();
    }
    ticket = communicator.start(request);
    ++calls;
  }

  void wait() {
    communicator.wait(ticket);
    for (size_t i = 0; i < oracles.size(); ++i) {
      std::string fault = memories[i].faultOf(oracles[i]);
      check(fault.empty(), "call " + std::to_string(calls) + ", part " + std::to_string(i) + ": " + fault);
    }
  }

  void checkCounters() const {
    for (const CollectiveCounters &counters : communicator.counters())
      if (counters.site == site)
        return check(counters.calls == calls && counters.elements == elements && counters.sentBytes == sent &&
                         counters.receivedBytes == sent,
                     "counters of " + site + ": " + std::to_string(counters.sentBytes) + " bytes, expected " +
                         std::to_string(sent));
    check(false, "no counters of " + site);
  }

  void addTo(OneBitOutcome &outcome) const {
    for (const OneBitMemory<T> &memory : memories) {
      outcome.results = outcome.results * 31 + memory.digest(false);
      outcome.errors = outcome.errors * 31 + memory.digest(true);
    }
  }

private:
  Communicator &communicator;
  std::vector<OneBitOracle<T>> oracles;
  std::vector<OneBitMemory<T>> memories;
  std::string site;
  int64_t calls = 0, elements = 0;
  uint64_t sent = 0, ticket = 0;
};

} // namespace

OneBitOutcome playOneBit(Communicator &communicator, uint32_t seed, int rounds, int64_t largestShard) {
  std::mt19937 common(seed);
  Spaces<float> narrow(common, communicator, largestShard);
  Spaces<double> wide(common, communicator, largestShard / 4);
  for (int round = 0; round < rounds; ++round) {
    narrow.start(common);
    RandomCollective other(common, communicator.world(), largestShard);
    RandomCollective::Memory memory = other.memoryOf(communicator.rank());
    uint64_t ticket = communicator.start(memory.request);
    wide.start(common);
    communicator.wait(ticket);
    std::string fault = other.faultOf(memory, communicator.rank());
    check(fault.empty(), fault);
    narrow.wait();
    wide.wait();
  }
  narrow.checkCounters();
  wide.checkCounters();
  OneBitOutcome outcome;
  narrow.addTo(outcome);
  wide.addTo(outcome);
  return outcome;
}

} // namespace ds::test
