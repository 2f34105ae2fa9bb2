#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/comm/Reduce.h"
#include "runtime/comm/threads/ThreadRanks.h"
#include "runtime/core/Session.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

TEST(Reduce, HasTheBitsOfRankOrder) {
  // In f32 the sum depends on the order: (1e8 + 1) - 1e8 is 0 from the left.
  float a = 1e8f, b = 1, c = -1e8f, out = 7;
  reduceParts(ElementType::F32, Reduction::Sum, {&a, &b, &c}, 1, &out);
  EXPECT_EQ(out, 0);
  reduceParts(ElementType::F32, Reduction::Sum, {&a, &c, &b}, 1, &out);
  EXPECT_EQ(out, 1);
}

TEST(Reduce, CoversTypesAndReductions) {
  for (ElementType type :
       {ElementType::F64, ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::I64, ElementType::I32}) {
    Tensor a(type, {2}), b(type, {2}), out(type, {2});
    for (size_t i = 0; i < 2; ++i) {
      storeDouble(type, a.data(), i, 3);
      storeDouble(type, b.data(), i, i ? -1 : 5);
    }
    auto value = [&](Reduction reduction, size_t i) {
      reduceParts(type, reduction, {a.data(), b.data()}, 2, out.data());
      return loadDouble(type, out.data(), i);
    };
    EXPECT_EQ(value(Reduction::Sum, 0), 8) << typeName(type);
    EXPECT_EQ(value(Reduction::Sum, 1), 2);
    EXPECT_EQ(value(Reduction::Mean, 0), 4);
    EXPECT_EQ(value(Reduction::Max, 0), 5);
    EXPECT_EQ(value(Reduction::Max, 1), 3);
  }
  EXPECT_FALSE(canReduce(ElementType::U8));
}

TEST(Reduce, MaximumOfNanIsNan) {
  float a = std::nanf(""), b = 1, out;
  reduceParts(ElementType::F32, Reduction::Max, {&a, &b}, 1, &out);
  EXPECT_TRUE(std::isnan(out));
  reduceParts(ElementType::F32, Reduction::Max, {&b, &a}, 1, &out);
  EXPECT_TRUE(std::isnan(out));
}

class RanksTest : public ::testing::Test {
protected:
  // Every rank runs the entry on its own data.
  std::vector<std::string> run(const char *entry, unsigned world, std::chrono::milliseconds timeout,
                               std::vector<std::vector<float>> &results) {
    auto package = Package::load(writePackage(folder.path()));
    ThreadRanks group(world, timeout);
    std::vector<std::string> errors(world);
    std::vector<std::thread> threads;
    results.resize(world);
    for (unsigned rank = 0; rank < world; ++rank)
      threads.emplace_back([&, rank] {
        errors[rank] = errorOf([&] {
          Session session(package, {1, group.join(rank)});
          Tensor input(ElementType::F32, {3});
          for (int i = 0; i < 3; ++i)
            reinterpret_cast<float *>(input.data())[i] = float(100 * rank) + float(i);
          std::vector<Tensor> outputs;
          session.run(package->entryIndex(entry), {input.view()}, {}, outputs);
          const float *data = reinterpret_cast<const float *>(outputs[0].data());
          results[rank].assign(data, data + 3);
        });
      });
    for (std::thread &thread : threads)
      thread.join();
    return errors;
  }

  TemporaryFolder folder;
};

TEST_F(RanksTest, ReduceDifferentDataOfTwoRanks) {
  std::vector<std::vector<float>> results;
  EXPECT_EQ(run("reduce", 2, 30s, results), std::vector<std::string>(2));
  EXPECT_EQ(results[0], (std::vector<float>{100, 102, 104}));
  EXPECT_EQ(results[1], results[0]);
}

TEST_F(RanksTest, AFailedRankReleasesTheOthers) {
  std::vector<std::vector<float>> results;
  auto errors = run("skipped", 2, 30s, results);
  EXPECT_NE(errors[0].find("all_reduce 'grad' at 'grad': rank 1 did not arrive; rank 1 failed"), std::string::npos)
      << errors[0];
  EXPECT_NE(errors[1].find("rank 1: entry 'skipped'"), std::string::npos) << errors[1];
}

TEST_F(RanksTest, AWorldOfOneNeedsNoGroup) {
  auto package = Package::load(writePackage(folder.path()));
  Session session(package, {1, nullptr});
  Tensor input(ElementType::F32, {2});
  reinterpret_cast<float *>(input.data())[0] = 4;
  reinterpret_cast<float *>(input.data())[1] = 5;
  std::vector<Tensor> outputs;
  session.run(package->entryIndex("reduce"), {input.view()}, {}, outputs);
  EXPECT_EQ(reinterpret_cast<float *>(outputs[0].data())[1], 5);
}

} // namespace
