#include "runtime/core/Arrivals.h"

#include <algorithm>

namespace ds {

bool Arrivals::Arrival::touches(const uint8_t *begin, const uint8_t *end) const {
  return std::any_of(states.begin(), states.end(), [&](State *state) {
    const auto *data = static_cast<const uint8_t *>(state->tensor.data());
    return begin < data + state->tensor.bytes() && data < end;
  });
}

void Arrivals::Arrival::refuse(const std::string &why) const {
  for (State *state : states)
    state->fault = why;
}

void Arrivals::settle(size_t number) {
  Arrival arrival = std::move(open[number]);
  open.erase(open.begin() + static_cast<std::ptrdiff_t>(number));
  try {
    communicator->wait(arrival.ticket);
  } catch (const std::exception &error) {
    arrival.refuse(error.what());
    throw;
  }
}

void Arrivals::settle(const void *memory, uint64_t bytes) {
  const auto *begin = static_cast<const uint8_t *>(memory);
  for (size_t i = 0; i < open.size();)
    if (open[i].touches(begin, begin + bytes))
      settle(i);
    else
      ++i;
}

void Arrivals::settleAll() {
  while (!open.empty())
    settle(0);
}

void Arrivals::abandon(const std::string &why) {
  for (const Arrival &arrival : open)
    arrival.refuse(why);
  open.clear();
}

} // namespace ds
