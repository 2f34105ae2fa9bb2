// All-reduces that travel as 1 bit: values, residuals and bytes, over every transport and at any length of messages.
#include "test/unit/runtime/comm/OneBitOracle.h"
#include "test/unit/runtime/comm/OneBitPlay.h"
#include "test/unit/runtime/comm/Ranks.h"
#include "test/unit/runtime/comm/Streams.h"
#include "test/unit/support/Seed.h"

#include "runtime/core/Error.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

class OneBit : public ::testing::TestWithParam<unsigned> {
protected:
  unsigned world = GetParam();
  std::vector<std::string> none = std::vector<std::string>(world);
};

INSTANTIATE_TEST_SUITE_P(Worlds, OneBit, ::testing::Values(2u, 3u, 4u, 8u));

TEST_P(OneBit, HasTheBitsAndBytesOfTheFormulaOnEveryTransport) {
  uint32_t seed = randomSeed();
  SCOPED_TRACE(concat("DS_SEED=", seed));
  std::vector<std::vector<OneBitOutcome>> outcomes;
  for (Wiring wiring : allWirings) {
    std::vector<OneBitOutcome> &own = outcomes.emplace_back(world);
    EXPECT_EQ(onThreads(wiring, world, 30s,
                        [&](unsigned rank, Communicator &communicator) {
                          own[rank] = playOneBit(communicator, seed, 8, 8000 / world);
                        }),
              none);
    for (unsigned rank = 0; rank < world; ++rank) {
      EXPECT_EQ(own[rank].results, own[0].results);
      EXPECT_EQ(own[rank].errors, outcomes[0][rank].errors);
    }
  }
}

TEST(OneBitOfManyMessages, IsTheSame) {
  for (unsigned world : {2u, 3u}) {
    std::mt19937 random(randomSeed());
    OneBitOracle<float> space(world, 1300000 * world + random() % 100); // more than two messages to each owner
    std::vector<OneBitMemory<float>> memories;
    for (unsigned rank = 0; rank < world; ++rank)
      memories.emplace_back(space, rank);
    space.drawInputs(random);
    space.step();
    auto errors = onThreads(Wiring::SharedMemory, world, 30s, [&](unsigned rank, Communicator &communicator) {
      memories[rank].load(space);
      CollectiveRequest request = oneBitRequest<float>();
      request.parts.push_back(memories[rank].part(space));
      communicator.wait(communicator.start(request));
      if (std::string fault = memories[rank].faultOf(space); !fault.empty())
        throw std::runtime_error(fault);
    });
    EXPECT_EQ(errors, std::vector<std::string>(world));
  }
}

// In an order that is drawn, with messages as short as they can be: nothing of it changes a bit, and nothing stands.
TEST_P(OneBit, HasTheSameBitsInAnyOrderAndLengthOfMessages) {
  std::mt19937 random(randomSeed());
  for (size_t chunkBytes : {64, 192, 1024}) {
    uint32_t seed = static_cast<uint32_t>(random());
    SCOPED_TRACE(concat("seed ", seed, ", messages of ", chunkBytes));
    std::mt19937 common(seed);
    std::vector<OneBitOracle<float>> oracles;
    for (unsigned i = 0; i < 40; ++i) // scales of more than one message
      oracles.emplace_back(common, world, i < 4 ? 6000 : 40);
    std::vector<std::vector<OneBitMemory<float>>> memories(world);
    for (int round = 0; round < 3; ++round) {
      Streams streams(world, chunkBytes, seed);
      for (OneBitOracle<float> &oracle : oracles) {
        oracle.drawInputs(common);
        for (unsigned rank = 0; round == 0 && rank < world; ++rank)
          memories[rank].emplace_back(oracle, rank);
        oracle.step();
      }
      std::vector<std::vector<float>> plain(world, std::vector<float>(9000, 1));
      for (unsigned rank = 0; rank < world; ++rank) {
        CollectiveRequest request = oneBitRequest<float>();
        for (size_t i = 0; i < oracles.size(); ++i) {
          memories[rank][i].load(oracles[i]);
          request.parts.push_back(memories[rank][i].part(oracles[i]));
        }
        streams.start(rank, request);
        streams.start(rank, requestOf(CollectiveOp::AllReduce, plain[rank].data(), 9000, world));
      }
      ASSERT_EQ(streams.run(static_cast<unsigned>(random() % world)), "");
      for (unsigned rank = 0; rank < world; ++rank) {
        for (size_t i = 0; i < oracles.size(); ++i)
          ASSERT_EQ(memories[rank][i].faultOf(oracles[i]), "") << "part " << i;
        ASSERT_EQ(plain[rank], std::vector<float>(9000, static_cast<float>(world)));
      }
    }
  }
}

// What travels and what is left out are together what there was, whatever the algorithm does in between.
TEST_P(OneBit, LosesNothing) {
  std::mt19937 random(randomSeed());
  OneBitOracle<float> space(random, world, 4000);
  std::vector<OneBitMemory<float>> memories;
  for (unsigned rank = 0; rank < world; ++rank)
    memories.emplace_back(space, rank);
  auto residual = [&](int64_t i) {
    double sum = 0;
    for (const OneBitMemory<float> &memory : memories)
      sum += memory.workerError[size_t(i)];
    return sum / world + memories[size_t(i / space.shard)].serverError[size_t(i % space.shard)];
  };
  for (int round = 0; round < 20; ++round) {
    space.drawInputs(random);
    std::vector<double> before(size_t(space.size()));
    for (int64_t i = 0; i < space.size(); ++i) {
      double sum = 0;
      for (unsigned rank = 0; rank < world; ++rank)
        sum += space.inputs[rank][size_t(i)];
      before[size_t(i)] = sum / world + residual(i);
    }
    EXPECT_EQ(onThreads(Wiring::Threads, world, 30s,
                        [&](unsigned rank, Communicator &communicator) {
                          CollectiveRequest request = oneBitRequest<float>();
                          memories[rank].load(space);
                          request.parts.push_back(memories[rank].part(space));
                          communicator.wait(communicator.start(request));
                        }),
              none);
    for (size_t s = 0; s < space.segments.size(); ++s)
      for (int64_t i = 0; i < space.segments[s].second; ++i) {
        int64_t at = space.segments[s].first + i;
        ASSERT_NEAR(memories[0].tensors[s][size_t(i)] + residual(at), before[size_t(at)], 2e-5) << at;
        ASSERT_EQ(memories[world - 1].tensors[s][size_t(i)], memories[0].tensors[s][size_t(i)]);
      }
  }
}

TEST_P(OneBit, KeepsErrorsBoundedAndTheLongMean) {
  std::mt19937 random(randomSeed());
  constexpr int64_t count = 3000;
  constexpr int rounds = 200;
  OneBitOracle<float> space(world, count);
  std::vector<double> given(count), come(count);
  std::vector<double> largest(world);
  std::vector<OneBitMemory<float>> memories;
  for (unsigned rank = 0; rank < world; ++rank)
    memories.emplace_back(space, rank);
  for (int round = 0; round < rounds; ++round) {
    space.drawInputs(random);
    Streams streams(world, 512, 1);
    for (unsigned rank = 0; rank < world; ++rank) {
      memories[rank].load(space);
      CollectiveRequest request = oneBitRequest<float>();
      request.parts.push_back(memories[rank].part(space));
      streams.start(rank, request);
      for (size_t i = 0; i < count; ++i)
        given[i] += space.inputs[rank][i] / double(world);
    }
    ASSERT_EQ(streams.run(0), "");
    for (size_t i = 0; i < count; ++i)
      come[i] += memories[0].tensors[0][i];
  }
  double apart = 0;
  for (size_t i = 0; i < count; ++i)
    apart = std::max(apart, std::fabs(given[i] - come[i]));
  EXPECT_LT(apart, 40); // of sums over 200 rounds: what both errors hold at the end
  for (const OneBitMemory<float> &memory : memories) {
    double squares = 0;
    for (size_t i = 0; i < count; ++i)
      squares += double(memory.workerError[i]) * memory.workerError[i];
    EXPECT_LT(std::sqrt(squares / count), 3); // inputs have a deviation of 1
  }
}

TEST(OneBitBytes, AreThoseOfThePaper) {
  struct Known {
    unsigned world;
    uint64_t bytes;
  };
  for (Known known : {Known{2, 125008}, {4, 187524}, {8, 218806}}) {
    auto errors = onThreads(Wiring::Threads, known.world, 30s, [&](unsigned rank, Communicator &communicator) {
      OneBitOracle<float> space(known.world, 1000000);
      OneBitMemory<float> memory(space, rank);
      CollectiveRequest request = oneBitRequest<float>();
      request.parts.push_back(memory.part(space));
      communicator.wait(communicator.start(request));
      CollectiveCounters counters = communicator.counters().at(0);
      if (counters.sentBytes != known.bytes || counters.receivedBytes != known.bytes)
        throw std::runtime_error(concat("sent ", counters.sentBytes, ", received ", counters.receivedBytes));
    });
    EXPECT_EQ(errors, std::vector<std::string>(known.world)) << known.world;
  }
}

// Of two parts one has a value that is no number: its results are none on all ranks, alike; the other part is as ever.
TEST_P(OneBit, NumbersThatAreNoneReachAllRanksAlike) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    std::mt19937 random(randomSeed());
    OneBitOracle<float> good(world, 1234), spoilt(world, 777);
    good.drawInputs(random);
    good.step();
    spoilt.drawInputs(random);
    spoilt.inputs[world - 1][random() % 777] = bad;
    std::vector<std::vector<float>> results(world);
    auto errors = onThreads(Wiring::SharedMemory, world, 30s, [&](unsigned rank, Communicator &communicator) {
      OneBitOracle<float> first = good;
      first.workerErrors.assign(world, std::vector<float>(size_t(good.size()), 0));
      first.serverErrors.assign(size_t(good.size()), 0);
      OneBitMemory<float> one(first, rank), two(spoilt, rank);
      CollectiveRequest request = oneBitRequest<float>();
      request.parts.push_back(one.part(good));
      request.parts.push_back(two.part(spoilt));
      communicator.wait(communicator.start(request));
      for (size_t i = 0; i < 1234; ++i)
        if (one.tensors[0][i] != good.result[i])
          throw std::runtime_error("the good part is spoilt");
      results[rank] = two.tensors[0];
    });
    EXPECT_EQ(errors, none);
    for (unsigned rank = 0; rank < world; ++rank)
      EXPECT_EQ(std::memcmp(results[rank].data(), results[0].data(), results[0].size() * sizeof(float)), 0);
    for (float value : results[0])
      EXPECT_FALSE(std::isfinite(value));
  }
}

TEST(OneBitOfOne, LeavesEverythingAsItIs) {
  std::mt19937 random(randomSeed());
  auto communicator = connectRanks(RankOptions());
  OneBitOracle<float> space(random, 1, 1000);
  space.drawInputs(random);
  space.workerErrors[0].assign(size_t(space.size()), 3);
  OneBitMemory<float> memory(space, 0), before = memory;
  CollectiveRequest request = oneBitRequest<float>();
  request.parts.push_back(memory.part(space));
  communicator->wait(communicator->start(request));
  EXPECT_EQ(memory.tensors, before.tensors);
  EXPECT_EQ(memory.workerError, before.workerError);
  EXPECT_EQ(memory.serverError, before.serverError);
  EXPECT_EQ(communicator->counters().at(0).sentBytes, 0u);
}

TEST(OneBitRequests, ThatMakeNoSenseAreRefused) {
  auto communicator = connectRanks(RankOptions());
  OneBitOracle<float> space(1, 24);
  OneBitMemory<float> memory(space, 0);
  auto refusal = [&](const std::function<void(CollectiveRequest &)> &change) -> std::string {
    CollectiveRequest request = oneBitRequest<float>();
    request.parts.push_back(memory.part(space));
    change(request);
    try {
      communicator->start(request);
    } catch (const Error &error) {
      std::string text = error.what();
      return text.substr(text.find(": ") + 2);
    }
    return "";
  };
  EXPECT_EQ(refusal([](CollectiveRequest &) {}), "");
  EXPECT_EQ(refusal([](auto &request) { request.reduction = Reduction::Sum; }),
            "cannot travel as 1 bit, expected the mean of an all_reduce");
  EXPECT_EQ(refusal([](auto &request) { request.op = CollectiveOp::Broadcast; }),
            "cannot travel as 1 bit, expected the mean of an all_reduce");
  EXPECT_EQ(refusal([](auto &request) { request.wire = ElementType::BF16; }),
            "elements of type f32 as bf16 cannot travel as 1 bit, expected f32 as f32 or f64 as f64");
  EXPECT_EQ(refusal([](auto &request) { request.parts[0].shard = request.parts[0].end = 28; }),
            "shard of 28 elements that travel as 1 bit, expected a multiple of 8");
  EXPECT_EQ(refusal([](auto &request) { request.parts[0].end = 16; }),
            "range [0, 16) travels as 1 bit, expected [0, 24)");
  EXPECT_EQ(refusal([](auto &request) { request.parts[0].workerError = nullptr; }),
            "has no memory for the worker error of what travels as 1 bit");
  EXPECT_EQ(refusal([](auto &request) { request.parts[0].serverError = nullptr; }),
            "has no memory for the server error of what travels as 1 bit");
}

// One rank means to compress, the others do not.
TEST_P(OneBit, IsAgreedUpon) {
  auto errors = onThreads(Wiring::Threads, world, 30s, [&](unsigned rank, Communicator &communicator) {
    OneBitOracle<float> space(world, 8 * world);
    OneBitMemory<float> memory(space, rank);
    CollectiveRequest request = oneBitRequest<float>();
    request.parts.push_back(memory.part(space));
    if (rank == 0)
      request.codec = Codec::None;
    communicator.wait(communicator.start(request));
  });
  for (const std::string &error : errors) {
    EXPECT_EQ(error.rfind("ranks disagree: rank 0 asks for ", 0), 0u) << error;
    EXPECT_NE(error.find(concat("(mean of ", 8 * world, " f32 as 1 bit: ")), std::string::npos) << error;
  }
}

} // namespace
