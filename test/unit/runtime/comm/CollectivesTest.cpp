// Collectives over every transport of one machine: bits, bytes and agreement.
#include "test/unit/runtime/comm/RandomCollective.h"
#include "test/unit/runtime/comm/Ranks.h"
#include "test/unit/support/Seed.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <thread>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

struct Expected {
  int64_t calls = 0, elements = 0;
  uint64_t sent = 0, received = 0;
};

void check(bool isRight, const std::string &what) {
  if (!isRight)
    throw std::runtime_error(what);
}

// Draws collectives, the same on all ranks, of which several are under way, and waits in an order of its own.
void playRandom(unsigned rank, unsigned world, Communicator &communicator, uint32_t seed, int rounds,
                int64_t largestShard) {
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
  const char *names[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"};
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

class Collectives : public ::testing::TestWithParam<std::tuple<Wiring, unsigned>> {
protected:
  Wiring wiring = std::get<0>(GetParam());
  unsigned world = std::get<1>(GetParam());
  std::vector<std::string> none = std::vector<std::string>(world);
};

INSTANTIATE_TEST_SUITE_P(Wired, Collectives,
                         ::testing::Combine(::testing::ValuesIn(allWirings), ::testing::Values(2u, 3u, 4u, 8u)),
                         [](const auto &info) {
                           return concat(wiringName(std::get<0>(info.param)), std::get<1>(info.param));
                         });

TEST_P(Collectives, HaveTheBitsAndBytesOfTheFormula) {
  uint32_t seed = randomSeed();
  SCOPED_TRACE(concat("DS_SEED=", seed));
  EXPECT_EQ(onThreads(wiring, world, 30s,
                      [&](unsigned rank, Communicator &communicator) {
                        playRandom(rank, world, communicator, seed, 40, 400);
                      }),
            none);
}

TEST_P(Collectives, OfManyChunksAreBounded) {
  uint32_t seed = randomSeed();
  SCOPED_TRACE(concat("DS_SEED=", seed));
  EXPECT_EQ(onThreads(wiring, world, 30s,
                      [&](unsigned rank, Communicator &communicator) {
                        playRandom(rank, world, communicator, seed, 2, 200000 / world);
                      }),
            none);
}

TEST_P(Collectives, DisagreementIsToldToAll) {
  auto errors = onThreads(wiring, world, 30s, [&](unsigned rank, Communicator &communicator) {
    std::vector<float> values(2 * world);
    communicator.setStep(3);
    int64_t count = rank == world - 1 ? 2 * world : world;
    communicator.wait(communicator.start(requestOf(CollectiveOp::AllReduce, values.data(), count, world)));
  });
  std::string first = concat("asks for all_reduce 'grad' at '/loss/MatMul' (sum of ", world, " f32: [0, ", world,
                             ") in shards of 1), rank ", world - 1, " for all_reduce 'grad' at '/loss/MatMul' (sum of ",
                             2 * world, " f32: [0, ", 2 * world, ") in shards of 2)");
  for (const std::string &error : errors) {
    EXPECT_EQ(error.rfind("ranks disagree, step 3: rank ", 0), 0u) << error;
    EXPECT_NE(error.find(first), std::string::npos) << error;
  }
}

TEST_P(Collectives, AReasonReachesThoseWhoWaitAndThoseWhoDoNot) {
  auto start = std::chrono::steady_clock::now();
  auto errors = onThreads(wiring, world, 30s, [&](unsigned rank, Communicator &communicator) {
    std::vector<float> values(world);
    auto request = requestOf(CollectiveOp::AllReduce, values.data(), world, world);
    communicator.wait(communicator.start(request));
    if (rank == 1)
      return communicator.leave("out of luck");
    uint64_t ticket = communicator.start(request);
    if (rank != 0)
      std::this_thread::sleep_for(200ms);
    communicator.wait(ticket);
  });
  EXPECT_EQ(errors[1], "");
  for (unsigned rank = 0; rank < world; ++rank)
    if (rank != 1) {
      std::string host = wiring == Wiring::Threads ? "" : " (host b)";
      EXPECT_EQ(errors[rank], concat("all_reduce 'grad' at '/loss/MatMul': rank 1", host,
                                     " did not arrive; rank 1 failed: out of luck"));
    }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

// One rank ends long before the others read what it sent last.
TEST_P(Collectives, WhatARankSentOutlivesIt) {
  int64_t count = 300000;
  auto errors = onThreads(wiring, world, 30s, [&](unsigned rank, Communicator &communicator) {
    std::vector<float> values(size_t(count), rank == 0 ? 7 : 0);
    auto request = requestOf(CollectiveOp::Broadcast, values.data(), count, 1);
    communicator.wait(communicator.start(request));
    check(std::all_of(values.begin(), values.end(), [](float value) { return value == 7; }), "wrong values");
  });
  EXPECT_EQ(errors, none);
}

TEST(SlowRanks, AreNamedAfterTheTimeout) {
  constexpr unsigned world = 3;
  for (Wiring wiring : allWirings) {
    auto errors = onThreads(wiring, world, 1s, [&](unsigned rank, Communicator &communicator) {
      std::vector<float> values(world);
      auto request = requestOf(CollectiveOp::AllReduce, values.data(), world, world);
      communicator.wait(communicator.start(request));
      if (rank == 1)
        std::this_thread::sleep_for(3s);
      communicator.wait(communicator.start(request));
    });
    std::string host = wiring == Wiring::Threads ? "" : " (host b)";
    for (const std::string &error : errors)
      EXPECT_EQ(error, concat("all_reduce 'grad' at '/loss/MatMul': rank 1", host, " did not arrive in 1 s"));
  }
}

TEST(WorldOfOne, MovesNothingAndIsRight) {
  RankOptions options;
  auto communicator = connectRanks(options);
  playRandom(0, 1, *communicator, randomSeed(), 100, 3000);
  for (const CollectiveCounters &counters : communicator->counters())
    EXPECT_EQ(counters.sentBytes + counters.receivedBytes, 0u);
}

TEST(Requests, ThatMakeNoSenseAreRefused) {
  auto communicator = connectRanks(RankOptions());
  auto refusal = [&](const std::function<void(CollectiveRequest &)> &change) -> std::string {
    float values[4] = {};
    CollectiveRequest request = requestOf(CollectiveOp::AllReduce, values, 4, 1);
    change(request);
    try {
      communicator->start(request);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](CollectiveRequest &) {}), "");
  EXPECT_NE(refusal([](auto &request) { request.type = ElementType::U8; }).find("u8 cannot travel as f32"),
            std::string::npos);
  EXPECT_NE(refusal([](auto &request) { request.type = request.wire = ElementType::U8; }).find("cannot reduce"),
            std::string::npos);
  EXPECT_NE(refusal([](auto &request) { request.type = ElementType::F16; }).find("f16 cannot travel as f32"),
            std::string::npos);
  EXPECT_NE(refusal([](auto &request) { request.parts[0].end = 5; }).find("range [0, 5), expected one within [0, 4)"),
            std::string::npos);
  EXPECT_NE(refusal([](auto &request) { request.parts[0].shard = -1; }).find("shard of -1"), std::string::npos);
  EXPECT_NE(refusal([](auto &request) { request.parts[0].whole[0].data = nullptr; }).find("expected memory at 0"),
            std::string::npos);
  EXPECT_NE(refusal([](auto &request) { request.op = CollectiveOp::AllGather; }).find("no memory"), std::string::npos);
}

} // namespace
