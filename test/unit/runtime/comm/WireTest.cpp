// What travels narrower than it lies in memory: values at the edges of the narrow types, and bytes.
#include "test/unit/runtime/comm/Ranks.h"

#include "runtime/core/Error.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

double power(int exponent) { return std::ldexp(1.0, exponent); }

struct Rounded {
  double given, expected;
};

struct Case {
  ElementType type, wire;
  std::vector<Rounded> values;
};

// Ties, overflow, subnormal numbers, signs of zeros; from f64 also what must not be rounded twice.
std::vector<Case> cases() {
  std::vector<Rounded> half = {{65504, 65504},
                               {65519, 65504},
                               {65520, infinity},
                               {-65520, -infinity},
                               {1e6, infinity},
                               {power(-24), power(-24)},
                               {power(-25), 0},
                               {power(-25) * (1 + power(-20)), power(-24)},
                               {-power(-26), -0.0},
                               {1 + power(-11), 1},
                               {1 + 3 * power(-11), 1 + power(-9)},
                               {-infinity, -infinity},
                               {nan, nan},
                               {-0.0, -0.0},
                               {3, 3}};
  std::vector<Rounded> brain = {{1 + power(-8), 1},
                                {1 + 3 * power(-8), 1 + power(-6)},
                                {-3.39e38, -(2 - power(-7)) * power(127)},
                                {3.4e38, infinity},
                                {power(-133), power(-133)},
                                {power(-134), 0},
                                {-power(-134) * (1 + power(-10)), -power(-133)},
                                {infinity, infinity},
                                {nan, nan},
                                {-0.0, -0.0}};
  std::vector<Rounded> single = {{1 + power(-24), 1}, {1 + power(-24) + power(-50), 1 + power(-23)},
                                 {1e39, infinity},    {power(-150), 0},
                                 {-0.0, -0.0},        {nan, nan}};
  std::vector<Case> all = {{ElementType::F32, ElementType::F16, half}, {ElementType::F32, ElementType::BF16, brain}};
  half.push_back({1 + power(-11) + power(-40), 1 + power(-10)});
  brain.push_back({1 + power(-8) + power(-40), 1 + power(-7)});
  brain.push_back({1e300, infinity});
  all.push_back({ElementType::F64, ElementType::F16, half});
  all.push_back({ElementType::F64, ElementType::BF16, brain});
  all.push_back({ElementType::F64, ElementType::F32, single});
  return all;
}

bool isSame(double found, double expected) {
  return std::isnan(expected) ? std::isnan(found) : found == expected && std::signbit(found) == std::signbit(expected);
}

void check(bool isRight, const std::string &what) {
  if (!isRight)
    throw std::runtime_error(what);
}

// In every shard all values, each from one rank, where the others have what changes no sum: -0.
template <typename T> void play(const Case &known, unsigned world, CollectiveOp op, Communicator &communicator) {
  unsigned rank = communicator.rank();
  auto shard = static_cast<int64_t>(known.values.size());
  std::vector<T> whole(size_t(shard * world), T(-0.0)), own(size_t(shard), T(-0.0));
  for (int64_t i = 0; i < shard * world; ++i)
    if ((i / shard + i % shard) % world == rank)
      whole[size_t(i)] = static_cast<T>(known.values[size_t(i % shard)].given);
  for (int64_t i = 0; i < shard; ++i)
    own[size_t(i)] = static_cast<T>(known.values[size_t(i)].given);
  CollectiveRequest request;
  request.op = op;
  request.type = known.type;
  request.wire = known.wire;
  request.parts.push_back({shard, 0, shard * world, {{whole.data(), 0, shard * world}}, own.data()});
  communicator.wait(communicator.start(request));
  const std::vector<T> &results = op == CollectiveOp::ReduceScatter ? own : whole;
  for (size_t i = 0; i < results.size(); ++i) {
    Rounded value = known.values[i % size_t(shard)];
    check(
        isSame(static_cast<double>(results[i]), value.expected),
        concat(value.given, " has become ", static_cast<double>(results[i]), ", expected ", value.expected, " at ", i));
  }
  size_t size = known.wire == ElementType::F32 ? 4 : 2;
  uint64_t phases = op == CollectiveOp::AllReduce ? 2 : 1;
  CollectiveCounters counters = communicator.counters().at(0);
  check(counters.sentBytes == phases * (world - 1) * uint64_t(shard) * size &&
            counters.receivedBytes == counters.sentBytes,
        concat("sent ", counters.sentBytes));
}

TEST(NarrowWires, RoundOnceAndToTheEdges) {
  for (Wiring wiring : allWirings)
    for (unsigned world : {2u, 3u})
      for (const Case &known : cases())
        for (CollectiveOp op : {CollectiveOp::AllReduce, CollectiveOp::ReduceScatter, CollectiveOp::AllGather}) {
          auto errors = onThreads(wiring, world, 30s, [&](unsigned, Communicator &communicator) {
            if (known.type == ElementType::F64)
              play<double>(known, world, op, communicator);
            else
              play<float>(known, world, op, communicator);
          });
          EXPECT_EQ(errors, std::vector<std::string>(world)) << wiringName(wiring) << " op " << int(op) << " "
                                                             << typeName(known.type) << " as " << typeName(known.wire);
        }
}

// Sums that f16 cannot hold have means that it can; small ones are not lost one by one.
TEST(NarrowWires, SumInF32) {
  constexpr unsigned world = 4;
  for (CollectiveOp op : {CollectiveOp::AllReduce, CollectiveOp::ReduceScatter}) {
    auto errors = onThreads(Wiring::Threads, world, 30s, [&](unsigned rank, Communicator &communicator) {
      std::vector<float> whole(2 * world), own(2);
      for (size_t i = 0; i < whole.size(); i += 2) {
        whole[i] = 60000;
        whole[i + 1] = rank == 0 ? 2048 : 1; // 2049 has no place in f16, nor has any sum on the way
      }
      CollectiveRequest request = requestOf(op, whole.data(), 2 * world, world, own.data());
      request.wire = ElementType::F16;
      request.reduction = Reduction::Mean;
      communicator.wait(communicator.start(request));
      const std::vector<float> &result = op == CollectiveOp::AllReduce ? whole : own;
      check(result[0] == 60000, concat("mean of 60000 is ", result[0]));
      check(result[1] == 513,
            concat("mean is ", result[1])); // 512.75 rounded to even; in f16 the sum would be 2052 or 2048
    });
    EXPECT_EQ(errors, std::vector<std::string>(world));
  }
}

} // namespace
