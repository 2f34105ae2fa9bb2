// Codes of rounded weights: by groups, and what has none.
#include "runtime/training/Codes.h"

#include <gtest/gtest.h>

using namespace ds;

namespace {
struct Case {
  std::vector<float> parameter, image;
  Shape parameterShape, imageShape;

  Codes codes(const QuantizationSettings &settings, int64_t bits, std::string &refusal) const {
    TensorView from{ElementType::F32, parameterShape, parameter.data()};
    TensorView to{ElementType::F32, imageShape, image.data()};
    return codesOf(from, to, settings, bits, refusal);
  }
};

QuantizationSettings groupsOf(int64_t groups, bool isSymmetric) {
  QuantizationSettings settings;
  settings.groups = groups;
  settings.isSymmetric = isSymmetric;
  return settings;
}
} // namespace

TEST(Codes, HaveAScaleForEachGroup) {
  // Steps of 4 bits: 8 / 8 and 0.5 / 8.
  Case weight{{-8, 3.1F, 0.5F, -0.2F}, {-8, 3, 0.4375F, -0.1875F}, {2, 2}, {2, 2}};
  std::string refusal;
  Codes found = weight.codes(groupsOf(2, true), 4, refusal);
  EXPECT_EQ(refusal, "");
  EXPECT_EQ(found.scales, (std::vector<float>{1, 0.0625F}));
  EXPECT_EQ(found.codes, (std::vector<int16_t>{-8, 3, 7, -3}));
  EXPECT_TRUE(found.zeroPoints.empty());
}

TEST(Codes, HaveAZeroPointForEachAsymmetricGroup) {
  // Of 4 bits: steps 16 / 16 and 4 / 16, from -4 and from -12 steps on.
  Case weight{{-4, 12, -3, 1}, {-4, 11, -3, 0.75F}, {4}, {4}};
  std::string refusal;
  Codes found = weight.codes(groupsOf(2, false), 4, refusal);
  EXPECT_EQ(refusal, "");
  EXPECT_EQ(found.scales, (std::vector<float>{1, 0.25F}));
  EXPECT_EQ(found.zeroPoints, (std::vector<int16_t>{4, 12}));
  EXPECT_EQ(found.codes, (std::vector<int16_t>{0, 15, 0, 15}));
}

TEST(Codes, RefuseWhatPackagesOfOthersMayHold) {
  auto refused = [](const Case &weight, int64_t groups) {
    std::string refusal;
    EXPECT_TRUE(weight.codes(groupsOf(groups, false), 4, refusal).codes.empty());
    return refusal;
  };
  Case four{{1, 2, 3, 4}, {1, 2, 3, 4}, {4}, {4}};
  EXPECT_EQ(refused(four, 3), "its 4 elements are no 3 groups");
  EXPECT_EQ(refused(four, 5), "its 4 elements are no 5 groups");
  EXPECT_EQ(refused({{1, 2, 3, 4}, {1, 2}, {4}, {2}}, 1), "what it is rounded to has another shape");
  EXPECT_EQ(refused({{}, {}, {0}, {0}}, 1), "its 0 elements are no 1 groups");
}
