// Gathers into states that go on after their entry has ended: what ranks have updated travels while the next entry
// computes.
#ifndef DEEPSTRIDE_RUNTIME_CORE_ARRIVALS_H
#define DEEPSTRIDE_RUNTIME_CORE_ARRIVALS_H

#include "runtime/comm/Communicator.h"
#include "runtime/core/StateStore.h"

#include <vector>

namespace ds {

class Arrivals {
public:
  explicit Arrivals(Communicator *communicator) : communicator(communicator) {}
  Arrivals(const Arrivals &) = delete;
  Arrivals &operator=(const Arrivals &) = delete;

  bool empty() const { return open.empty(); }

  // The states that a collective reads and writes, which nobody touches before a `settle`. They live at least as long.
  void add(uint64_t ticket, std::vector<State *> states) { open.push_back({ticket, std::move(states)}); }

  // Waits for those that lie in this memory, so that it can be read and written. Throws Error as the communicator's
  // wait does; their states are refused from then on.
  void settle(const void *memory, uint64_t bytes);
  void settleAll();
  // This rank has left, so that nothing is written any more: states are refused, saying why.
  void abandon(const std::string &why);

private:
  struct Arrival {
    uint64_t ticket;
    std::vector<State *> states;

    bool touches(const uint8_t *begin, const uint8_t *end) const;
    void refuse(const std::string &why) const;
  };
  void settle(size_t number);

  Communicator *communicator;
  std::vector<Arrival> open;
};

} // namespace ds
#endif
