// Bands of diagonals in random matrices of two numbers, against a search through every pair of bounds.
#include "dialects/ds/Diagonals.h"
#include "test/unit/support/Seed.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace deepstride;
using namespace mlir;

namespace {
std::mt19937_64 randomEngine(randomSeed());

int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(randomEngine); }

struct Matrix {
  int64_t rows, columns;
  std::vector<double> numbers;

  double at(int64_t row, int64_t column) const { return numbers[static_cast<size_t>(row * columns + column)]; }
};

/// `inside` from diagonal `lower` to `upper`, both of which may lie outside of the matrix.
Matrix bandOf(int64_t rows, int64_t columns, int64_t lower, int64_t upper, double inside, double outside) {
  Matrix matrix{rows, columns, {}};
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      matrix.numbers.push_back(column - row >= lower && column - row <= upper ? inside : outside);
  return matrix;
}

std::optional<ds::Diagonals> find(MLIRContext &context, const Matrix &matrix, SmallVector<int64_t> front = {}) {
  front.append({matrix.rows, matrix.columns});
  auto type = RankedTensorType::get(front, Float64Type::get(&context));
  return ds::findDiagonals(type, [&](int64_t i) { return matrix.numbers[static_cast<size_t>(i)]; });
}

/// Whether some pair of bounds gives the matrix, with either number inside.
bool isBand(const Matrix &matrix) {
  double low = *std::min_element(matrix.numbers.begin(), matrix.numbers.end());
  double high = *std::max_element(matrix.numbers.begin(), matrix.numbers.end());
  for (int64_t lower = -matrix.rows; lower <= matrix.columns; ++lower)
    for (int64_t upper = lower; upper <= matrix.columns; ++upper)
      if (bandOf(matrix.rows, matrix.columns, lower, upper, low, high).numbers == matrix.numbers ||
          bandOf(matrix.rows, matrix.columns, lower, upper, high, low).numbers == matrix.numbers)
        return low != high;
  return false;
}

void expectSame(const Matrix &matrix, const ds::Diagonals &found) {
  EXPECT_EQ(found.rows, matrix.rows);
  EXPECT_EQ(found.columns, matrix.columns);
  Matrix again = bandOf(matrix.rows, matrix.columns, found.lower.value_or(-matrix.rows),
                        found.upper.value_or(matrix.columns), found.inside, found.outside);
  EXPECT_EQ(again.numbers, matrix.numbers);
}

TEST(Diagonals, OfEveryBandAndOfNothingElse) {
  MLIRContext context;
  int bands = 0, others = 0;
  for (int round = 0; round < 3000; ++round) {
    int64_t rows = draw(2, 6), columns = draw(2, 6), lower = draw(-rows, columns), upper = draw(lower, columns);
    Matrix matrix = bandOf(rows, columns, lower, upper, 0, -1e9);
    if (round % 2) // a hole, or a number beside the band
      matrix.numbers[static_cast<size_t>(draw(0, rows * columns - 1))] = draw(0, 1) ? 0 : -1e9;
    auto found = find(context, matrix);
    EXPECT_EQ(found.has_value(), isBand(matrix));
    found ? ++bands : ++others;
    if (found)
      expectSame(matrix, *found);
  }
  EXPECT_GT(bands, 500);
  EXPECT_GT(others, 300);
}

TEST(Diagonals, BoundsAreOpenWhereTheBandReachesACorner) {
  MLIRContext context;
  auto causal = find(context, bandOf(4, 7, -9, 3, 0, -1));
  ASSERT_TRUE(causal);
  EXPECT_FALSE(causal->lower);
  EXPECT_EQ(causal->upper, 3);
  auto sliding = find(context, bandOf(5, 5, -2, 0, 1, 0));
  ASSERT_TRUE(sliding);
  EXPECT_EQ(sliding->lower, -2);
  EXPECT_EQ(sliding->upper, 0);
}

TEST(Diagonals, AxesInFrontAreOfSizeOne) {
  MLIRContext context;
  Matrix matrix = bandOf(3, 3, -9, 0, 0, -1);
  EXPECT_TRUE(find(context, matrix, {1, 1}));
  auto twice = RankedTensorType::get({2, 3, 3}, Float64Type::get(&context));
  EXPECT_FALSE(ds::findDiagonals(twice, [&](int64_t i) { return matrix.numbers[static_cast<size_t>(i % 9)]; }));
  auto open = RankedTensorType::get({ShapedType::kDynamic, 3}, Float64Type::get(&context));
  EXPECT_FALSE(ds::findDiagonals(open, [](int64_t) { return 0.0; }));
  auto vector = RankedTensorType::get({9}, Float64Type::get(&context));
  EXPECT_FALSE(ds::findDiagonals(vector, [&](int64_t i) { return matrix.numbers[static_cast<size_t>(i)]; }));
}

TEST(Diagonals, NothingOfNanThreeNumbersOneNumberOrOneRow) {
  MLIRContext context;
  Matrix matrix = bandOf(3, 4, -9, 0, 0, -1);
  for (double odd : {std::nan(""), -2.0}) {
    Matrix other = matrix;
    other.numbers[static_cast<size_t>(draw(0, 11))] = odd;
    EXPECT_FALSE(find(context, other));
  }
  EXPECT_FALSE(find(context, bandOf(3, 4, -9, 9, 0, -1)));
  EXPECT_FALSE(find(context, bandOf(1, 4, -9, 2, 0, -1)));
  EXPECT_FALSE(find(context, bandOf(4, 1, -2, 9, 0, -1)));
}

TEST(Diagonals, AttributesKeepAllOfThem) {
  MLIRContext context;
  for (std::optional<int64_t> lower : {std::optional<int64_t>(), std::optional<int64_t>(-3)})
    for (std::optional<int64_t> upper : {std::optional<int64_t>(), std::optional<int64_t>(0)}) {
      ds::Diagonals before{5, 7, lower, upper, -0.5, -INFINITY};
      auto after = ds::diagonalsFrom(ds::toAttribute(&context, before));
      ASSERT_TRUE(after);
      EXPECT_EQ(std::tie(after->rows, after->columns, after->lower, after->upper, after->inside, after->outside),
                std::tie(before.rows, before.columns, lower, upper, before.inside, before.outside));
    }
}

TEST(Diagonals, AttributesFromTextMayLackParts) {
  MLIRContext context;
  ds::Diagonals whole{5, 7, -1, 2, 1, 0};
  auto list = cast<DictionaryAttr>(ds::toAttribute(&context, whole));
  for (StringRef name : {"rows", "columns", "inside", "outside"}) {
    NamedAttrList others(list);
    others.erase(name);
    EXPECT_FALSE(ds::diagonalsFrom(others.getDictionary(&context))) << name.str();
  }
  EXPECT_FALSE(ds::diagonalsFrom(nullptr));
  EXPECT_FALSE(ds::diagonalsFrom(UnitAttr::get(&context)));
}
} // namespace
