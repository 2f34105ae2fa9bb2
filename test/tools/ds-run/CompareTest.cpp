#include "test/unit/runtime/PackageBuilder.h"

#include "tools/ds-run/TensorCompare.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace ds;

namespace {

const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();

Tensor tensor(ElementType type, const std::vector<double> &values) {
  Tensor result(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    storeDouble(type, result.data(), i, values[i]);
  return result;
}

Difference compare(ElementType type, const std::vector<double> &found, const std::vector<double> &expected,
                   Tolerance tolerance = {}) {
  Tensor a = tensor(type, found), b = tensor(type, expected);
  return compareTensors(a.view(), b.view(), tolerance);
}

TEST(Compare, UsesTheRuleOfTheOnnxSuite) {
  Tolerance suite{1e-3, 1e-7};
  EXPECT_TRUE(compare(ElementType::F32, {1.0009, 0}, {1, 0}, suite).isWithin());
  EXPECT_FALSE(compare(ElementType::F32, {1.0011}, {1}, suite).isWithin());
  EXPECT_TRUE(compare(ElementType::F32, {5e-8}, {0}, suite).isWithin());
  EXPECT_FALSE(compare(ElementType::F32, {2e-7}, {0}, suite).isWithin());
  EXPECT_TRUE(compare(ElementType::F32, {1.5}, {1}, {0, 0.5}).isWithin());
  EXPECT_FALSE(compare(ElementType::F32, {1.5}, {1}, {0.4, 0}).isWithin());
}

TEST(Compare, MeasuresAngleAndNoise) {
  Difference difference = compare(ElementType::F64, {3, 0}, {3, 4});
  EXPECT_DOUBLE_EQ(*difference.cosine, 0.6);
  EXPECT_DOUBLE_EQ(*difference.signalToNoise, 10 * std::log10(25.0 / 16));
  EXPECT_DOUBLE_EQ(*compare(ElementType::F64, {-3, -4}, {3, 4}).cosine, -1);
  difference = compare(ElementType::F32, {0.1, 0.2, 0.3}, {0.1, 0.2, 0.3});
  EXPECT_EQ(*difference.cosine, 1);
  EXPECT_EQ(*difference.signalToNoise, inf);
  // What is not finite has no direction; a tensor of zeros has none at all.
  EXPECT_DOUBLE_EQ(*compare(ElementType::F64, {nan, inf, 1}, {nan, inf, 2}).cosine, 1);
  EXPECT_TRUE(std::isnan(*compare(ElementType::F64, {0, 0}, {0, 0}).cosine));
  for (double one : {nan, inf, -inf}) // the others are equal, which says nothing
    EXPECT_TRUE(std::isnan(*compare(ElementType::F64, {one, 1}, {3, 1}).cosine) &&
                std::isnan(*compare(ElementType::F64, {3, 1}, {one, 1}).signalToNoise));
  EXPECT_FALSE(compare(ElementType::I32, {1}, {1}).cosine);
}

TEST(Compare, ScalesWhatIsNotGivenToTheData) {
  // An element near zero has the error of its neighbours, whatever their scale; theirs is not worth more than 1e-3.
  for (double scale : {1e-20, 1e-3, 1.0, 1e20}) {
    std::vector<double> expected = {scale, -2 * scale, 1e-6 * scale, 0, 3 * scale}, found = expected;
    found[2] = 2e-4 * scale;
    found[3] = -2e-4 * scale;
    EXPECT_TRUE(compare(ElementType::F32, found, expected).isWithin()) << scale;
    EXPECT_TRUE(compare(ElementType::F64, found, expected).isWithin()) << scale;
    found[3] = 3e-3 * scale;
    EXPECT_EQ(compare(ElementType::F32, found, expected).firstOutside, 3) << scale;
    found = expected;
    found[4] = 3.01 * scale;
    EXPECT_EQ(compare(ElementType::F32, found, expected).firstOutside, 4) << scale;
    EXPECT_FALSE(compare(ElementType::F32, std::vector<double>(5, 0), expected).isWithin()) << scale;
  }
  // A few huge or infinite elements, as masks have, and many zeros do not hide the others.
  std::vector<double> masked(100, 1), zeros(100, 0);
  for (size_t i = 0; i < 40; ++i)
    masked[i] = i % 2 ? 3e38 : -inf;
  masked[50] = 0;
  std::vector<double> found = masked;
  found[99] = 1.01;
  EXPECT_EQ(compare(ElementType::F32, found, masked).firstOutside, 99);
  zeros[7] = 1;
  found = zeros;
  found[8] = 0.01;
  EXPECT_EQ(compare(ElementType::F32, found, zeros).firstOutside, 8);
  EXPECT_TRUE(compare(ElementType::F32, {0, 5e-8}, {0, 0}).isWithin()); // no data to scale by
  EXPECT_FALSE(compare(ElementType::F32, {0, 2e-7}, {0, 0}).isWithin());
  EXPECT_TRUE(compare(ElementType::BF16, {1 + 0x1p-7}, {1}).isWithin()); // the next number
  EXPECT_FALSE(compare(ElementType::BF16, {1 + 0x1p-5}, {1}).isWithin());
}

TEST(Compare, IntegersAreExactUnlessTold) {
  EXPECT_FALSE(compare(ElementType::I64, {100001}, {100000}).isWithin());
  EXPECT_FALSE(compare(ElementType::I32, {1000500}, {1000000}, {1e-3, 1e-7}).isWithin());
  EXPECT_FALSE(compare(ElementType::I64, {100001}, {100000}, {1e-3, std::nullopt}).isWithin());
  EXPECT_TRUE(compare(ElementType::U8, {101}, {100}, {std::nullopt, 1}).isWithin());
  EXPECT_FALSE(compare(ElementType::U8, {102}, {100}, {1, 1}).isWithin());
  EXPECT_FALSE(compare(ElementType::I1, {1}, {0}, {1, 1}).isWithin());
}

TEST(Compare, NanNeverAgreesWithANumber) {
  Tolerance anything{1e30, 1e30};
  EXPECT_FALSE(compare(ElementType::F32, {nan}, {1}, anything).isWithin());
  EXPECT_FALSE(compare(ElementType::F32, {1}, {nan}, anything).isWithin());
  EXPECT_FALSE(compare(ElementType::F32, {inf}, {1}, anything).isWithin());
  EXPECT_FALSE(compare(ElementType::F32, {inf}, {-inf}, anything).isWithin());
  EXPECT_FALSE(compare(ElementType::F32, {nan}, {inf}, anything).isWithin());
  EXPECT_FALSE(compare(ElementType::F32, {1}, {inf}, anything).isWithin());
}

TEST(Compare, EqualNansAndInfinitiesAgree) {
  Difference difference = compare(ElementType::F32, {nan, inf, -inf}, {nan, inf, -inf}, {0, 0});
  EXPECT_TRUE(difference.isWithin());
  EXPECT_EQ(difference.maxUlp, 0u);
}

TEST(Compare, CountsUlpsOfTheType) {
  EXPECT_EQ(ulpDistance(ElementType::F32, 1, std::nextafterf(1, 2)), 1u);
  EXPECT_EQ(ulpDistance(ElementType::F32, -std::numeric_limits<float>::denorm_min(),
                        std::numeric_limits<float>::denorm_min()),
            2u);
  EXPECT_EQ(ulpDistance(ElementType::F32, 0.0, -0.0), 0u);
  EXPECT_EQ(ulpDistance(ElementType::F64, 1, std::nextafter(1, 2)), 1u);
  EXPECT_EQ(ulpDistance(ElementType::F16, 1, 1 + 0x1p-10), 1u);
  EXPECT_EQ(ulpDistance(ElementType::BF16, 1, 1 + 0x1p-7), 1u);
  EXPECT_EQ(compare(ElementType::F16, {1, 2}, {1, 2 + 0x1p-8}).maxUlp, 2u);
}

TEST(Compare, ReportsMaximaAndTheFirstOffender) {
  Difference difference = compare(ElementType::F32, {1, 2.5, 3}, {1, 2, 4});
  EXPECT_EQ(difference.maxAbsolute, 1);
  EXPECT_EQ(difference.maxRelative, 0.25);
  EXPECT_EQ(difference.outside, 2);
  EXPECT_EQ(difference.firstOutside, 1);
}

TEST(Compare, ComparesIntegersExactly) {
  Tensor a(ElementType::I64, {1}), b(ElementType::I64, {1});
  int64_t big = (int64_t(1) << 60) + 1, next = big + 1;
  std::memcpy(a.data(), &big, 8);
  std::memcpy(b.data(), &next, 8);
  EXPECT_EQ(compareTensors(a.view(), b.view(), {0, 0}).maxUlp, 1u);
  EXPECT_FALSE(compareTensors(a.view(), b.view(), {0, 0}).isWithin());
  EXPECT_FALSE(compare(ElementType::U8, {255}, {0}).isWithin());
  EXPECT_FALSE(compare(ElementType::I1, {1}, {0}).isWithin());
  EXPECT_TRUE(compare(ElementType::I1, {1}, {1}, {0, 0}).isWithin());
}

TEST(Compare, ShapesAndTypesMustAgree) {
  Tensor a = tensor(ElementType::F32, {1, 2}), b = tensor(ElementType::F64, {1, 2}), c = tensor(ElementType::F32, {1});
  EXPECT_EQ(compareTensors(a.view(), b.view(), {}).reason, "type differs, found f32, expected f64");
  EXPECT_EQ(compareTensors(a.view(), c.view(), {}).reason, "shape differs, found [2], expected [1]");
  EXPECT_TRUE(compareTensors(a.view(), b.view(), {}, true).isWithin());
}

} // namespace
