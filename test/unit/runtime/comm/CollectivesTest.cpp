// Collectives over every transport of one machine: bits, bytes and agreement.
#include "test/unit/runtime/comm/RandomPlay.h"
#include "test/unit/runtime/comm/Ranks.h"
#include "test/unit/support/Seed.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <thread>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

void check(bool isRight, const std::string &what) {
  if (!isRight)
    throw std::runtime_error(what);
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
                      [&](unsigned, Communicator &communicator) { playRandom(communicator, seed, 40, 400); }),
            none);
}

TEST_P(Collectives, OfManyChunksAreBounded) {
  uint32_t seed = randomSeed();
  SCOPED_TRACE(concat("DS_SEED=", seed));
  EXPECT_EQ(onThreads(wiring, world, 30s,
                      [&](unsigned, Communicator &communicator) { playRandom(communicator, seed, 2, 200000 / world); }),
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

// A rank that gets all it needs from one other still learns that a third wants something else.
TEST_P(Collectives, DisagreementIsFoundBetweenRanksThatExchangeNothing) {
  auto errors = onThreads(wiring, world, 30s, [&](unsigned rank, Communicator &communicator) {
    std::vector<float> values(10);
    if (rank == world - 1)
      std::this_thread::sleep_for(300ms);
    int64_t count = rank == world - 1 ? 9 : 10;
    communicator.wait(communicator.start(requestOf(CollectiveOp::Broadcast, values.data(), count, 1)));
  });
  for (const std::string &error : errors)
    EXPECT_EQ(error.rfind("ranks disagree: rank ", 0), 0u) << error;
}

// Ranks that differ in whom they send to would wait for ever.
TEST_P(Collectives, DisagreementAboutNeighboursIsToldToAll) {
  auto errors = onThreads(wiring, world, 30s, [&](unsigned rank, Communicator &communicator) {
    std::vector<float> values(10), own(10);
    auto request = requestOf(CollectiveOp::SendRecv, values.data(), 10, 1, own.data());
    request.by = 1;
    request.rotates = rank == world - 1;
    communicator.wait(communicator.start(request));
  });
  for (const std::string &error : errors) {
    EXPECT_EQ(error.rfind("ranks disagree: rank ", 0), 0u) << error;
    EXPECT_NE(error.find("send_recv 'grad' at '/loss/MatMul' (10 f32 around by 1: [0, 10) in shards of 10)"),
              std::string::npos)
        << error;
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

// Losses do not wait behind parameters.
TEST_P(Collectives, ASmallOneOvertakesALargeOne) {
  constexpr int64_t count = int64_t(8) << 20;
  EXPECT_EQ(onThreads(wiring, world, 30s,
                      [&](unsigned rank, Communicator &communicator) {
                        std::vector<float> large(count, static_cast<float>(rank)), small(world);
                        CollectiveRequest first = requestOf(CollectiveOp::AllReduce, large.data(), count, world);
                        first.site = "large";
                        uint64_t ticket = communicator.start(first);
                        small[rank] = 1;
                        communicator.wait(communicator.start(
                            requestOf(CollectiveOp::AllGather, small.data(), world, world, &small[rank])));
                        for (const CollectiveCounters &site : communicator.counters())
                          check(site.site != "large" || site.calls == 0, "the large one came first");
                        communicator.wait(ticket);
                        check(small == std::vector<float>(world, 1), "wrong gather");
                        check(large.front() == static_cast<float>(world * (world - 1) / 2), "wrong sum");
                      }),
            none);
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
  playRandom(*communicator, randomSeed(), 100, 3000);
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
  auto refusalOfTurn = [&](int64_t by, int64_t shard) {
    return refusal([&](auto &request) {
      request.op = CollectiveOp::SendRecv;
      request.by = by;
      request.parts[0].shard = shard;
    });
  };
  EXPECT_NE(refusalOfTurn(0, 4).find("goes by 0 ranks, expected -4096 to 4096, and not 0"), std::string::npos);
  EXPECT_NE(refusalOfTurn(-4097, 4).find("goes by -4097 ranks"), std::string::npos);
  EXPECT_NE(refusalOfTurn(1, 3).find("range [0, 4), expected one within [0, 3)"), std::string::npos);
  EXPECT_NE(refusalOfTurn(1, 4).find("no memory"), std::string::npos);
}

} // namespace
