// Follows indices from where they are counted (Range, or a running sum of ones) through the ops that exporters put
// between them and a comparison. Coefficients and offsets are size expressions: a cache shifts rows by its length.
#include "passes/graph/Positions.h"

#include "dialects/ds/Contents.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

namespace {
struct Reader {
  const SizeAnalysis &sizes;
  int steps = 64; // of all walks together; masks of real models need a dozen

  const SizeVector &shapeOf(Value value) const { return sizes.facts(value).sizes; }
  std::optional<Positions> read(Value value);
  std::optional<Positions> readReshape(ds::ReshapeOp op);
  std::optional<Positions> readBinary(ds::BinaryOp op);
  std::optional<Positions> readQuotient(ds::BinaryOp op);

  /// The same numbers with axes in front, as broadcasting sees them.
  static Positions extend(Positions positions, size_t rank) {
    positions.coefficients.insert(positions.coefficients.begin(), rank - positions.coefficients.size(), SizeExpr(0));
    return positions;
  }
};
} // namespace

std::optional<Positions> Reader::read(Value value) {
  const TensorFacts *facts = sizes.lookup(value);
  Operation *op = value.getDefiningOp();
  if (!facts || steps-- <= 0)
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
    return facts->elementType.isInteger(1) ? std::nullopt : read(cast.getInput());
  if (auto reshape = dyn_cast_if_present<ds::ReshapeOp>(op))
    return readReshape(reshape);
  if (auto broadcast = dyn_cast_if_present<ds::BroadcastOp>(op)) {
    auto positions = read(broadcast.getInput());
    return positions && positions->coefficients.size() <= rank ? std::optional(extend(*positions, rank)) : std::nullopt;
  }
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
  auto left = read(op.getLhs()), right = read(op.getRhs());
  if (!left || !right)
    return std::nullopt;
  size_t rank = shapeOf(op.getResult()).size();
  Positions a = extend(*left, rank), b = extend(*right, rank);
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
  auto dividend = read(op.getLhs()), divisor = read(op.getRhs());
  if (!dividend || !divisor || !dividend->offset.isConstant(0))
    return std::nullopt;
  for (const SizeExpr &coefficient : divisor->coefficients)
    if (!coefficient.isConstant(0))
      return std::nullopt;
  const SizeVector &shape = shapeOf(op.getResult());
  if (dividend->coefficients.size() != shape.size())
    return std::nullopt;
  SizeExpr span = 1; // numbers below the divisor
  bool isQuotient = op.getKind() == ds::BinaryKind::div;
  for (size_t axis = shape.size(); axis-- > 0;) {
    SizeExpr &coefficient = dividend->coefficients[axis];
    if (coefficient.isConstant(0))
      continue;
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

std::optional<Positions> positionsOf(Value value, const SizeAnalysis &sizes) { return Reader{sizes}.read(value); }

std::optional<SizeExpr> boundaryOf(ds::BinaryOp comparison, const SizeAnalysis &sizes) {
  Value left = comparison.getLhs(), right = comparison.getRhs();
  bool strict = comparison.getKind() == ds::BinaryKind::lt || comparison.getKind() == ds::BinaryKind::gt;
  if (comparison.getKind() == ds::BinaryKind::ge || comparison.getKind() == ds::BinaryKind::gt)
    std::swap(left, right);
  else if (comparison.getKind() != ds::BinaryKind::le && comparison.getKind() != ds::BinaryKind::lt)
    return std::nullopt;
  Reader reader{sizes};
  auto low = reader.read(left), high = reader.read(right);
  size_t rank = rankOf(comparison.getResult());
  if (!low || !high || rank < 2)
    return std::nullopt;
  Positions a = Reader::extend(*low, rank), b = Reader::extend(*high, rank);
  SizeVector difference;
  for (size_t axis = 0; axis < rank; ++axis)
    difference.push_back(a.coefficients[axis] - b.coefficients[axis]);
  for (size_t axis = 0; axis + 2 < rank; ++axis)
    if (!difference[axis].isConstant(0))
      return std::nullopt;
  // direction * (column - row) + offset <= 0
  SizeExpr offset = a.offset - b.offset + SizeExpr(strict ? 1 : 0), column = difference[rank - 1];
  if (!(column + difference[rank - 2]).isConstant(0))
    return std::nullopt;
  if (column.isConstant(1))
    return SizeExpr(0) - offset;
  return column.isConstant(-1) ? std::optional(offset - SizeExpr(1)) : std::nullopt;
}

} // namespace deepstride
