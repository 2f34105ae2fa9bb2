// All-reduces of tables by rows: values as of the whole table, bytes of the rows that are touched.
#include "test/unit/runtime/comm/Ranks.h"
#include "test/unit/runtime/comm/SparseTable.h"
#include "test/unit/runtime/comm/Streams.h"
#include "test/unit/support/Seed.h"

#include "runtime/comm/SparseRowsTask.h"
#include "runtime/core/Error.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

class SparseRows : public ::testing::TestWithParam<unsigned> {
protected:
  unsigned world = GetParam();
  std::vector<std::string> none = std::vector<std::string>(world);
};

INSTANTIATE_TEST_SUITE_P(Worlds, SparseRows, ::testing::Values(2u, 3u, 4u, 8u));

TEST_P(SparseRows, HaveTheBitsAndBytesOfTheFormulaOnEveryTransport) {
  uint32_t seed = randomSeed();
  SCOPED_TRACE(concat("DS_SEED=", seed));
  for (Wiring wiring : allWirings)
    EXPECT_EQ(onThreads(wiring, world, 30s,
                        [&](unsigned, Communicator &communicator) { playSparse(communicator, seed, 10); }),
              none);
}

// In an order that is drawn, with rows that are longer than messages; another collective comes after.
TEST_P(SparseRows, HaveTheSameBitsInAnyOrderAndLengthOfMessages) {
  std::mt19937 random(randomSeed());
  for (int round = 0; round < 30; ++round) {
    uint32_t seed = static_cast<uint32_t>(random());
    SCOPED_TRACE(concat("seed ", seed));
    std::mt19937 common(seed);
    size_t chunkBytes = 64u << (common() % 4);
    SparseTable table(common, world, 100, 60, round % 3 == 0 ? 1.0 : 0.2);
    Streams streams(world, chunkBytes, seed);
    std::vector<std::vector<float>> memories = table.values;
    std::vector<std::vector<float>> plain(world, std::vector<float>(9000, 1));
    for (unsigned rank = 0; rank < world; ++rank) {
      streams.start(rank, table.request(memories[rank]));
      streams.start(rank, requestOf(CollectiveOp::AllReduce, plain[rank].data(), 9000, world));
    }
    ASSERT_EQ(streams.run(static_cast<unsigned>(random() % world)), "");
    for (unsigned rank = 0; rank < world; ++rank) {
      ASSERT_EQ(table.faultOf(memories[rank]), "");
      for (size_t i = 0; i < memories[0].size(); ++i)
        ASSERT_EQ(std::memcmp(&memories[rank][i], &memories[0][i], sizeof(float)), 0) << i;
      ASSERT_EQ(streams.task(rank, 0).sentBytes(), table.sentBytes(rank));
      ASSERT_EQ(plain[rank], std::vector<float>(9000, static_cast<float>(world)));
    }
  }
}

// A table of 1,000 rows of 16 f32, each rank its own number of rows: bytes by hand.
TEST(SparseRowsBytes, AreExactForEveryRankAndTurnWhereTheTableIsLess) {
  constexpr unsigned world = 2;
  struct Known {
    int64_t first, second; // rows of the ranks
    uint64_t firstBytes, secondBytes;
  };
  // A row is 72 bytes, the table 2 * 64,000 for both together: up to 1,777 rows travel as rows.
  for (Known known : {Known{0, 0, 8, 8},
                      {1, 0, 80, 8},
                      {10, 700, 728, 50408},
                      {1000, 777, 72008, 55952},
                      {1000, 778, 64008, 64008},
                      {1000, 1000, 64008, 64008}}) {
    auto errors = onThreads(Wiring::Threads, world, 30s, [&](unsigned rank, Communicator &communicator) {
      std::vector<float> table(16000);
      for (int64_t row = 0; row < (rank == 0 ? known.first : known.second); ++row)
        table[size_t(rank == 0 ? row : 999 - row) * 16 + 3] = static_cast<float>(rank + 1);
      CollectiveRequest request = requestOf(CollectiveOp::AllReduce, table.data(), 16000, world);
      request.codec = Codec::SparseRows;
      request.parts[0].rowLength = 16;
      communicator.wait(communicator.start(request));
      for (int64_t row = 0; row < 1000; ++row) {
        float expected = (row < known.first ? 1.0f : 0.0f) + (999 - row < known.second ? 2.0f : 0.0f);
        if (table[size_t(row) * 16 + 3] != expected)
          throw std::runtime_error(concat("row ", row, " is ", table[size_t(row) * 16 + 3]));
      }
      uint64_t sent = communicator.counters().at(0).sentBytes;
      if (sent != (rank == 0 ? known.firstBytes : known.secondBytes))
        throw std::runtime_error(concat("sent ", sent));
    });
    EXPECT_EQ(errors, std::vector<std::string>(world)) << known.first << " " << known.second;
  }
}

// The same table, of which each rank gets the sums of 500 rows: what is less is judged by one way.
TEST(SparseRowsBytes, AreExactWhereRanksOwnPartsOfTheSums) {
  constexpr unsigned world = 2;
  struct Known {
    int64_t first, second;
    uint64_t firstBytes, secondBytes;
  };
  for (Known known : {Known{0, 0, 8, 8}, {10, 700, 728, 50408}, {500, 388, 36008, 27944}, {500, 389, 32008, 32008}}) {
    auto errors = onThreads(Wiring::Threads, world, 30s, [&](unsigned rank, Communicator &communicator) {
      std::vector<float> table(16000);
      auto isTouched = [&](unsigned by, int64_t row) { return by == 0 ? row < known.first : 999 - row < known.second; };
      for (int64_t row = 0; row < 1000; ++row)
        table[size_t(row) * 16 + 3] = isTouched(rank, row) ? static_cast<float>(rank + 1) : 0.0f;
      CollectiveRequest request = requestOf(CollectiveOp::ReduceScatter, table.data(), 16000, world);
      request.codec = Codec::SparseRows;
      request.parts[0].rowLength = 16;
      request.parts[0].own = nullptr;
      communicator.wait(communicator.start(request));
      for (int64_t row = 0; row < 1000; ++row) {
        bool isOwn = row / 500 == rank; // the others are this rank's still
        float expected = (isTouched(0, row) && (isOwn || rank == 0) ? 1.0f : 0.0f) +
                         (isTouched(1, row) && (isOwn || rank == 1) ? 2.0f : 0.0f);
        if (table[size_t(row) * 16 + 3] != expected)
          throw std::runtime_error(concat("row ", row, " is ", table[size_t(row) * 16 + 3]));
      }
      uint64_t sent = communicator.counters().at(0).sentBytes;
      if (sent != (rank == 0 ? known.firstBytes : known.secondBytes))
        throw std::runtime_error(concat("sent ", sent));
    });
    EXPECT_EQ(errors, std::vector<std::string>(world)) << known.first << " " << known.second;
  }
}

// The same sums as of the whole table where narrower floats travel, or f64, or integers.
TEST_P(SparseRows, OfAnyTypeAreWhatTheWholeTableWouldBe) {
  struct Types {
    ElementType type, wire;
    CollectiveOp op = CollectiveOp::AllReduce;
  };
  uint32_t seed = randomSeed();
  SCOPED_TRACE(concat("DS_SEED=", seed));
  for (Types types : {Types{ElementType::F32, ElementType::BF16},
                      {ElementType::F32, ElementType::F16},
                      {ElementType::F64, ElementType::F64},
                      {ElementType::F64, ElementType::F32},
                      {ElementType::BF16, ElementType::BF16},
                      {ElementType::I32, ElementType::I32},
                      {ElementType::F32, ElementType::F32, CollectiveOp::ReduceScatter},
                      {ElementType::F32, ElementType::BF16, CollectiveOp::ReduceScatter}}) {
    auto errors = onThreads(Wiring::Threads, world, 30s, [&](unsigned rank, Communicator &communicator) {
      std::mt19937 random(seed + rank);
      constexpr int64_t rows = 300, length = 7;
      size_t size = typeSize(types.type);
      std::vector<uint8_t> sparse(rows * length * size, 0);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0, end = random() % 40 ? 0 : length; i < end; ++i) {
          double value = std::normal_distribution<double>(0, 1)(random);
          uint8_t *place = sparse.data() + size_t(row * length + i) * size;
          auto narrow = static_cast<float>(value);
          if (types.type == ElementType::F64)
            std::memcpy(place, &value, size);
          else if (types.type == ElementType::BF16)
            std::memcpy(place, reinterpret_cast<uint8_t *>(&narrow) + 2, size);
          else if (auto whole = static_cast<int32_t>(value * 1e8); types.type == ElementType::I32)
            std::memcpy(place, &whole, size);
          else
            std::memcpy(place, &narrow, size);
        }
      std::vector<uint8_t> whole = sparse;
      auto reduce = [&](std::vector<uint8_t> &memory, Codec codec) {
        CollectiveRequest request = requestOf(types.op, nullptr, rows * length, world);
        request.type = types.type;
        request.wire = types.wire;
        request.codec = codec;
        request.reduction = Reduction::Mean;
        request.site = codec == Codec::None ? "/whole" : "/rows";
        request.parts[0].whole[0].data = memory.data();
        request.parts[0].rowLength = length;
        communicator.wait(communicator.start(request));
      };
      reduce(sparse, Codec::SparseRows);
      reduce(whole, Codec::None);
      if (sparse != whole)
        throw std::runtime_error("differs from the whole table's");
      auto counters = communicator.counters();
      if (counters.at(0).sentBytes >= counters.at(1).sentBytes)
        throw std::runtime_error("is no less than the whole table");
    });
    EXPECT_EQ(errors, none) << typeName(types.type) << " as " << typeName(types.wire);
  }
}

TEST(SparseRowsOfOne, MoveNothing) {
  std::mt19937 random(randomSeed());
  auto communicator = connectRanks(RankOptions());
  SparseTable table(random, 1, 50, 10, 0.5);
  std::vector<float> memory = table.values[0];
  communicator->wait(communicator->start(table.request(memory)));
  for (size_t i = 0; i < memory.size(); ++i)
    EXPECT_TRUE(memory[i] == table.values[0][i] || std::isnan(memory[i]));
  EXPECT_EQ(communicator->counters().at(0).sentBytes, 0u);
}

// Rows that no rank can have sent are not written anywhere.
TEST(RowStreams, RefuseRowsThatCannotBe) {
  auto messageOf = [](std::vector<int64_t> numbers, size_t row) -> std::string {
    RowStream stream;
    stream.expect(static_cast<int64_t>(numbers.size()), row, 10);
    Payload payload;
    for (int64_t number : numbers) {
      const auto *bytes = reinterpret_cast<const uint8_t *>(&number);
      payload.insert(payload.end(), bytes, bytes + sizeof(number));
      payload.insert(payload.end(), row, 0);
    }
    stream.waiting.push_back(payload);
    try {
      for (; !stream.isEnded(); stream.drop())
        if (!stream.fill())
          return "is not whole";
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(messageOf({0, 3, 9}, 8), "");
  EXPECT_EQ(messageOf({0, 10}, 8), "was sent row 10 of 10 after row 0");
  EXPECT_EQ(messageOf({3, 3}, 8), "was sent row 3 of 10 after row 3");
  EXPECT_EQ(messageOf({-1}, 8), "was sent row -1 of 10 after row -1");
}

TEST(SparseRowsRequests, ThatMakeNoSenseAreRefused) {
  auto communicator = connectRanks(RankOptions());
  float values[12] = {};
  auto refusal = [&](const std::function<void(CollectiveRequest &)> &change) -> std::string {
    CollectiveRequest request = requestOf(CollectiveOp::AllReduce, values, 12, 1);
    request.codec = Codec::SparseRows;
    request.parts[0].rowLength = 4;
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
  EXPECT_EQ(refusal([](auto &request) { request.reduction = Reduction::Max; }),
            "cannot travel as rows, expected the sum or mean of an all_reduce or a reduce_scatter");
  EXPECT_EQ(refusal([](auto &request) { request.op = CollectiveOp::Broadcast; }),
            "cannot travel as rows, expected the sum or mean of an all_reduce or a reduce_scatter");
  EXPECT_EQ(refusal([&](auto &request) {
              request.op = CollectiveOp::ReduceScatter;
              request.parts[0].own = values;
            }),
            "travels as rows into memory of its own, expected what this rank owns in its place");
  EXPECT_EQ(refusal([](auto &request) { request.parts.clear(); }),
            "0 parts travel as rows, expected one with one tensor");
  EXPECT_EQ(refusal([](auto &request) { request.parts[0].rowLength = 0; }),
            "tensor of 12 elements in rows of 0, expected a divisor of that");
  EXPECT_EQ(refusal([](auto &request) { request.parts[0].rowLength = 5; }),
            "tensor of 12 elements in rows of 5, expected a divisor of that");
  EXPECT_EQ(refusal([](auto &request) { request.parts[0].end = 8; }),
            "tensor [0, 12) travels as rows, expected it within [0, 8)");
}

} // namespace
