// Gathers that are still under way when their entry has ended: who waits for which of them, and what failures leave
// behind.
#include "runtime/core/Arrivals.h"
#include "runtime/core/Error.h"

#include <gtest/gtest.h>

namespace ds {
namespace {

// Remembers what is waited for; one ticket fails.
class Waits : public Communicator {
public:
  unsigned rank() const override { return 0; }
  unsigned world() const override { return 2; }
  uint64_t start(const CollectiveRequest &) override { return 0; }
  void wait(uint64_t ticket) override {
    tickets.push_back(ticket);
    if (ticket == failing)
      fail(ErrorCode::Collective, "rank 1 has died");
  }
  void leave(const std::string &) override {}
  void setStep(int64_t) override {}
  std::vector<CollectiveCounters> counters() const override { return {}; }

  std::vector<uint64_t> tickets;
  uint64_t failing = 0;
};

class ArrivalsTest : public testing::Test {
protected:
  ArrivalsTest() {
    for (State &state : states)
      state.tensor = Tensor(ElementType::F32, {16});
    arrivals.add(1, {&states[0], &states[1]});
    arrivals.add(2, {&states[2]});
    arrivals.add(3, {&states[3]});
  }

  void use(size_t state, size_t firstByte = 0, size_t bytes = 64) {
    arrivals.settle(static_cast<uint8_t *>(states[state].tensor.data()) + firstByte, bytes);
  }

  using Tickets = std::vector<uint64_t>;
  Waits waits;
  Arrivals arrivals{&waits};
  State states[5];
};

TEST_F(ArrivalsTest, WhatIsUsedIsWaitedForOnceAndNothingElse) {
  use(4);
  EXPECT_EQ(waits.tickets, Tickets());
  use(2);
  EXPECT_EQ(waits.tickets, Tickets({2}));
  use(2);
  use(1);
  use(0); // came with the one before
  EXPECT_EQ(waits.tickets, Tickets({2, 1}));
  EXPECT_FALSE(arrivals.empty());
  arrivals.settleAll();
  EXPECT_EQ(waits.tickets, Tickets({2, 1, 3}));
  EXPECT_TRUE(arrivals.empty());
}

// A view of a rank's part lies somewhere in the memory of tensors.
TEST_F(ArrivalsTest, MemoryCountsNotTheStateThatItIsUsedAs) {
  use(3, 60, 4);
  EXPECT_EQ(waits.tickets, Tickets({3}));
  use(0, 0, 0); // of no bytes
  EXPECT_EQ(waits.tickets, Tickets({3}));
}

TEST_F(ArrivalsTest, StatesOfAGatherThatFailsAreRefused) {
  waits.failing = 1;
  EXPECT_THROW(use(1), Error);
  EXPECT_EQ(states[0].fault, "rank 1 has died");
  EXPECT_EQ(states[1].fault, "rank 1 has died");
  EXPECT_EQ(states[2].fault, "");
  arrivals.abandon("left");
  EXPECT_EQ(states[0].fault, "rank 1 has died");
  EXPECT_EQ(states[2].fault, "left");
  EXPECT_EQ(states[3].fault, "left");
  EXPECT_EQ(states[4].fault, "");
  EXPECT_TRUE(arrivals.empty());
  EXPECT_EQ(waits.tickets, Tickets({1})); // nobody waits after this rank has left
}

} // namespace
} // namespace ds
