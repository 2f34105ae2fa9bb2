// Follows indices from where they are counted (Range, or a running sum of ones) through the ops that exporters put
// between them and a comparison. Coefficients and offsets are size expressions: a cache shifts rows by its length.
#include "passes/graph/Positions.h"

#include "dialects/ds/Contents.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

namespace {
/// An element as offset + the sum of coefficient * index over the axes.
struct Positions {
  SizeVector coefficients;
  SizeExpr offset;
};

struct Reader {
  const SizeAnalysis &sizes;
  int steps = 64; // of all walks together; masks of real models need a dozen

  const SizeVector &shapeOf(Value value) const { return sizes.facts(value).sizes; }
  std::optional<Positions> read(Value value);
  std::optional<Positions> readAny(Value value);
  std::optional<Positions> readReshape(ds::ReshapeOp op);
  std::optional<Positions> readBinary(ds::BinaryOp op);
  std::optional<Positions> readQuotient(ds::BinaryOp op);
  std::optional<Positions> extend(std::optional<Positions> positions, const SizeVector &from, const SizeVector &to);
  std::optional<Positions> read(Value value, const SizeVector &to) { return extend(read(value), shapeOf(value), to); }
};
} // namespace

/// The same numbers in the shape that they broadcast to; the index of a repeated axis does not count.
std::optional<Positions> Reader::extend(std::optional<Positions> positions, const SizeVector &from,
                                        const SizeVector &to) {
  if (!positions || from.size() > to.size())
    return std::nullopt;
  positions->coefficients.insert(positions->coefficients.begin(), to.size() - from.size(), SizeExpr(0));
  for (size_t back = 1; back <= from.size(); ++back) {
    if (from[from.size() - back] == to[to.size() - back])
      continue;
    SizeExpr &coefficient = positions->coefficients[to.size() - back];
    if (!from[from.size() - back].isConstant(1) && !coefficient.isConstant(0))
      return std::nullopt; // only a run tells
    coefficient = 0;
  }
  return positions;
}

static bool holdsPositions(Type type) {
  return type.isInteger(64) || type.isInteger(32) || type.isF64() || type.isF32();
}

/// Whether the type holds these numbers exactly, for every size that a run may have: wrapped or rounded ones are no
/// places. An f32 is exact up to 2^24, an f64 up to 2^53. Scores of more than 2^20 rows and columns fit no memory, so
/// that this much is left for what indices and sizes are multiplied with. Elements of inputs may be any number of their
/// type: those of 64 bits, in a sum that may wrap, are no offsets.
static bool isExactIn(const Positions &positions, Type type) {
  bool isSingle = type.isF32(), isShort = type.isInteger(32);
  int64_t largest = isSingle ? int64_t(1) << 22 : isShort ? int64_t(1) << 30 : int64_t(1) << 50;
  int64_t steepest = isSingle ? 4 : isShort ? 512 : int64_t(1) << 20;
  auto isSmall = [&](const SizeExpr &size, bool isFactor) {
    if (SizeRange range = size.range(); size.isOverElements() && (range.low < -largest || range.high > largest))
      return false;
    return llvm::all_of(size.polynomial(), [&](const auto &term) {
      int64_t limit = isFactor || !term.first.empty() ? steepest : largest;
      return term.second >= -limit && term.second <= limit;
    });
  };
  return isSmall(positions.offset, false) &&
         llvm::all_of(positions.coefficients, [&](const SizeExpr &c) { return isSmall(c, true); });
}

std::optional<Positions> Reader::read(Value value) {
  auto positions = readAny(value);
  return positions && isExactIn(*positions, sizes.facts(value).elementType) ? positions : std::nullopt;
}

std::optional<Positions> Reader::readAny(Value value) {
  const TensorFacts *facts = sizes.lookup(value);
  Operation *op = value.getDefiningOp();
  if (!facts || steps-- <= 0 || !holdsPositions(facts->elementType))
    return std::nullopt;
  size_t rank = facts->sizes.size();
  bool isNumber = facts->contents && facts->contents->size() == 1;
  if (isNumber && !isExact(*facts) && facts->contents->front().isOverElements())
    return std::nullopt; // may have wrapped, which dimensions do not
  if (isNumber && isExact(*facts))
    return Positions{SizeVector(rank, SizeExpr(0)), facts->contents->front()};
  if (auto number = scalarOf(value); number && std::trunc(*number) == *number && std::abs(*number) < 1e15)
    return Positions{SizeVector(rank, SizeExpr(0)), SizeExpr(static_cast<int64_t>(*number))};
  if (auto iota = dyn_cast_if_present<ds::IotaOp>(op)) {
    Positions positions{SizeVector(rank, SizeExpr(0)), 0};
    positions.coefficients[iota.getAxis()] = 1;
    return positions;
  }
  if (auto sum = dyn_cast_if_present<ds::CumulativeOp>(op)) {
    // A running sum of ones counts.
    auto ones = read(sum.getInput());
    if (sum.getReverse() || sum.getKind() != ds::ReduceKind::sum || !ones || !ones->offset.isConstant(1) ||
        llvm::any_of(ones->coefficients, [](const SizeExpr &c) { return !c.isConstant(0); }))
      return std::nullopt;
    ones->coefficients[sum.getAxis()] = 1;
    ones->offset = sum.getExclusive() ? 0 : 1;
    return ones;
  }
  if (auto cast = dyn_cast_if_present<ds::CastOp>(op))
    return read(cast.getInput());
  if (auto reshape = dyn_cast_if_present<ds::ReshapeOp>(op))
    return readReshape(reshape);
  if (auto broadcast = dyn_cast_if_present<ds::BroadcastOp>(op))
    return read(broadcast.getInput(), shapeOf(value));
  if (auto transpose = dyn_cast_if_present<ds::TransposeOp>(op)) {
    auto positions = read(transpose.getInput());
    if (!positions)
      return std::nullopt;
    SizeVector permuted;
    for (int64_t source : transpose.getPermutation())
      permuted.push_back(positions->coefficients[source]);
    return Positions{permuted, positions->offset};
  }
  if (auto slice = dyn_cast_if_present<ds::SliceOp>(op)) {
    auto positions = read(slice.getInput());
    auto starts = sizesFromAttribute(slice.getStarts());
    if (!positions || !starts)
      return std::nullopt;
    for (size_t axis = 0; axis < rank; ++axis) {
      positions->offset = positions->offset + positions->coefficients[axis] * (*starts)[axis];
      positions->coefficients[axis] = positions->coefficients[axis] * SizeExpr(slice.getSteps()[axis]);
    }
    return positions;
  }
  auto binary = dyn_cast_if_present<ds::BinaryOp>(op);
  return binary ? readBinary(binary) : std::nullopt;
}

/// Axes of size 1 come and go; one counted axis may be split into several.
std::optional<Positions> Reader::readReshape(ds::ReshapeOp op) {
  auto positions = read(op.getInput());
  if (!positions)
    return std::nullopt;
  const SizeVector &from = shapeOf(op.getInput()), &to = shapeOf(op.getResult());
  SizeVector left, right;
  std::vector<size_t> leftAxes, rightAxes;
  for (auto [shape, kept, axes] : {std::tuple(&from, &left, &leftAxes), std::tuple(&to, &right, &rightAxes)})
    for (size_t axis = 0; axis < shape->size(); ++axis)
      if (!(*shape)[axis].isConstant(1)) {
        kept->push_back((*shape)[axis]);
        axes->push_back(axis);
      }
  Positions result{SizeVector(to.size(), SizeExpr(0)), positions->offset};
  if (left == right) {
    for (auto [source, target] : llvm::zip_equal(leftAxes, rightAxes))
      result.coefficients[target] = positions->coefficients[source];
    return result;
  }
  if (left.size() != 1 || product(right) != left[0])
    return std::nullopt;
  SizeExpr stride = positions->coefficients[leftAxes[0]];
  for (size_t axis = to.size(); axis-- > 0;) {
    result.coefficients[axis] = to[axis].isConstant(1) ? SizeExpr(0) : stride;
    stride = stride * to[axis];
  }
  return result;
}

std::optional<Positions> Reader::readBinary(ds::BinaryOp op) {
  if (op.getKind() == ds::BinaryKind::div || op.getKind() == ds::BinaryKind::mod)
    return readQuotient(op);
  bool isProduct = op.getKind() == ds::BinaryKind::mul;
  if (!isProduct && op.getKind() != ds::BinaryKind::add && op.getKind() != ds::BinaryKind::sub)
    return std::nullopt;
  const SizeVector &shape = shapeOf(op.getResult());
  auto left = read(op.getLhs(), shape), right = read(op.getRhs(), shape);
  if (!left || !right)
    return std::nullopt;
  size_t rank = shape.size();
  Positions a = *left, b = *right;
  auto isNumber = [](const Positions &p) {
    return llvm::all_of(p.coefficients, [](const SizeExpr &c) { return c.isConstant(0); });
  };
  if (isProduct && !isNumber(b))
    std::swap(a, b);
  if (isProduct && !isNumber(b))
    return std::nullopt;
  SizeExpr sign = op.getKind() == ds::BinaryKind::sub ? -1 : 1;
  a.offset = isProduct ? a.offset * b.offset : a.offset + sign * b.offset;
  for (size_t axis = 0; axis < rank; ++axis)
    a.coefficients[axis] =
        isProduct ? a.coefficients[axis] * b.offset : a.coefficients[axis] + sign * b.coefficients[axis];
  return a;
}

/// Row and column of a flat index: what counts in steps of the divisor, and what stays below it.
std::optional<Positions> Reader::readQuotient(ds::BinaryOp op) {
  const SizeVector &shape = shapeOf(op.getResult());
  auto dividend = read(op.getLhs(), shape), divisor = read(op.getRhs(), shape);
  if (!dividend || !divisor || !dividend->offset.isConstant(0) ||
      isa<FloatType>(sizes.facts(op.getResult()).elementType))
    return std::nullopt;
  for (const SizeExpr &coefficient : divisor->coefficients)
    if (!coefficient.isConstant(0))
      return std::nullopt;
  SizeExpr span = 1; // numbers below the divisor
  bool isQuotient = op.getKind() == ds::BinaryKind::div;
  for (size_t axis = shape.size(); axis-- > 0;) {
    SizeExpr &coefficient = dividend->coefficients[axis];
    if (coefficient.isConstant(0))
      continue;
    if (!coefficient.isKnownNonNegative())
      return std::nullopt; // division rounds toward zero
    if (coefficient == span && span != divisor->offset) {
      span = span * shape[axis];
      coefficient = isQuotient ? SizeExpr(0) : coefficient;
    } else if (auto steps = SizeExpr::exactQuotient(coefficient, divisor->offset)) { // of 0 there are no positions
      coefficient = isQuotient ? *steps : SizeExpr(0);
    } else {
      return std::nullopt;
    }
  }
  return span == divisor->offset ? dividend : std::nullopt;
}

/// column - row + offset where the numbers are that, or its negative.
static std::optional<std::pair<SizeExpr, bool>> distanceOf(const Positions &positions, const SizeVector &shape) {
  size_t rank = shape.size();
  for (size_t axis = 0; axis + 2 < rank; ++axis)
    if (!positions.coefficients[axis].isConstant(0))
      return std::nullopt;
  SizeExpr column = positions.coefficients[rank - 1], row = positions.coefficients[rank - 2];
  bool isNegative = column.isConstant(-1);
  // The index of one row is 0, whatever it is multiplied with.
  bool isOpposite = (column + row).isConstant(0) || shape[rank - 2].isConstant(1);
  if (!isOpposite || (!isNegative && !column.isConstant(1)))
    return std::nullopt;
  return std::pair(isNegative ? SizeExpr(0) - positions.offset : positions.offset, isNegative);
}

static bool countsColumns(const Positions &positions) {
  auto isZero = [](const SizeExpr &c) { return c.isConstant(0); };
  return positions.coefficients.back().isConstant(1) &&
         llvm::all_of(ArrayRef(positions.coefficients).drop_back(), isZero);
}

/// Whether a value of a run has one place for each row of an array.
static bool holdsRows(Value value, const SizeVector &shape, const SizeAnalysis &sizes) {
  const TensorFacts &facts = sizes.facts(value);
  return facts.elementType.isSignlessInteger(64) && facts.rank() >= 2 && facts.rank() <= 4 &&
         facts.sizes.back().isConstant(1) && facts.sizes[facts.rank() - 2] == shape[shape.size() - 2] &&
         !shape[shape.size() - 2].isConstant(1);
}

std::optional<Band> bandOf(ds::BinaryOp comparison, bool negated, const SizeAnalysis &sizes) {
  Value low = comparison.getLhs(), high = comparison.getRhs();
  bool strict = comparison.getKind() == ds::BinaryKind::lt || comparison.getKind() == ds::BinaryKind::gt;
  bool isGreater = comparison.getKind() == ds::BinaryKind::ge || comparison.getKind() == ds::BinaryKind::gt;
  if (!strict && !isGreater && comparison.getKind() != ds::BinaryKind::le)
    return std::nullopt;
  if (isGreater != negated)
    std::swap(low, high);
  strict ^= negated; // of whole numbers, not (a <= b) is b < a
  const SizeVector &shape = sizes.facts(comparison.getResult()).sizes;
  if (shape.size() < 2)
    return std::nullopt;
  Reader reader{sizes};
  SizeExpr rounding = strict ? 1 : 0;
  if (ds::UnaryOp absolute = unaryOf(low, ds::UnaryKind::abs)) {
    // |distance + offset| <= bound
    auto inner = reader.read(absolute.getInput(), shape), bound = reader.read(high, shape);
    auto distance = inner ? distanceOf(*inner, shape) : std::nullopt;
    if (!distance || !bound || llvm::any_of(bound->coefficients, [](const SizeExpr &c) { return !c.isConstant(0); }))
      return std::nullopt;
    SizeExpr reach = bound->offset - rounding;
    return Band{SizeExpr(0) - reach - distance->first, reach - distance->first, {}};
  }
  auto a = reader.read(low, shape), b = reader.read(high, shape);
  if (a && !b && countsColumns(*a) && holdsRows(high, shape, sizes))
    return Band{std::nullopt, SizeExpr(0) - a->offset - rounding, high};
  if (b && !a && countsColumns(*b) && holdsRows(low, shape, sizes))
    return Band{rounding - b->offset, std::nullopt, low};
  if (!a || !b)
    return std::nullopt;
  // low - high + rounding <= 0
  for (size_t axis = 0; axis < shape.size(); ++axis)
    a->coefficients[axis] = a->coefficients[axis] - b->coefficients[axis];
  a->offset = a->offset - b->offset + rounding;
  auto distance = distanceOf(*a, shape);
  if (!distance)
    return std::nullopt;
  // Of -(distance + offset) <= 0 the offset has its sign turned already.
  SizeExpr bound = SizeExpr(0) - distance->first;
  return distance->second ? Band{bound, std::nullopt, {}} : Band{std::nullopt, bound, {}};
}

} // namespace deepstride
