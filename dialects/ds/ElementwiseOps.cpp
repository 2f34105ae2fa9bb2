// Shape rules of elementwise ops. Integer tensors carry symbolic contents through them: this is how shape arithmetic
// (Shape, Gather, Mul, Concat, Reshape) is evaluated without running it.
#include "dialects/ds/Contents.h"
#include "dialects/ds/DsDialect.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

/// The element of a flat list at the position of a broadcast result, for lists of broadcast shapes.
static SizeVector broadcastContents(const TensorFacts &facts, ArrayRef<SizeExpr> shape) {
  int64_t count = product(shape).constant().value_or(0);
  SizeVector result;
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat, index = 0, stride = 1;
    for (int64_t axis = static_cast<int64_t>(shape.size()) - 1; axis >= 0; --axis) {
      int64_t size = *shape[axis].constant();
      int64_t position = rest % size;
      rest /= size;
      int64_t own = axis - (static_cast<int64_t>(shape.size()) - facts.rank());
      if (own < 0)
        continue;
      int64_t ownSize = *facts.sizes[own].constant();
      index += (ownSize == 1 ? 0 : position) * stride;
      stride *= ownSize;
    }
    result.push_back((*facts.contents)[index]);
  }
  return result;
}

static std::optional<SizeExpr> evaluate(UnaryKind kind, const SizeExpr &element, Type type) {
  auto x = settled(element, type);
  if (!x)
    return std::nullopt;
  switch (kind) {
  case UnaryKind::neg: return kept(SizeExpr::exactSum(0, element, -1), type, /*mayBeMinusZero=*/true);
  case UnaryKind::abs: return kept(SizeExpr::max(*x, SizeExpr(0) - *x), type);
  case UnaryKind::logical_not: return SizeExpr(1) - *x;
  case UnaryKind::relu: return SizeExpr::max(*x, 0);
  case UnaryKind::floor:
  case UnaryKind::ceil:
  case UnaryKind::round: return x;
  default: return std::nullopt;
  }
}

/// A whole quotient of floats; infinite, or none, where the divisor is 0.
static std::optional<SizeExpr> dividedExactly(const SizeExpr &a, const SizeExpr &b) {
  SizeExpr quotient = SizeExpr::floorDiv(a, b);
  bool isWhole = !b.isConstant(0) && (SizeExpr::exactQuotient(a, b) || quotient * b == a);
  return isWhole ? std::optional(quotient) : std::nullopt;
}

/// A quotient of integers, rounded towards 0.
static std::optional<SizeExpr> divided(const SizeExpr &a, const SizeExpr &b, Type type) {
  if (b.isConstant(0))
    return std::nullopt;
  auto areNonNegative = [](const SizeExpr &x, const SizeExpr &y) {
    return x.isKnownNonNegative() && y.isKnownNonNegative();
  };
  if (areNonNegative(a, b)) // truncation equals floor
    return SizeExpr::floorDiv(a, b);
  // What is a product of dimensions, say, is negative only where it wrapped.
  if (areNonNegative(withoutFailures(a), withoutFailures(b)))
    return forSizes(SizeExpr::floorDiv(a, b), type);
  auto divisor = b.constant();
  if (!divisor || *divisor < 0)
    return std::nullopt;
  return SizeExpr::floorDiv(a + SizeExpr::select(SizeExpr::lt(a, 0), *divisor - 1, 0), b);
}

/// Addition, subtraction and multiplication wrap alike however wide the operands are taken; everything else needs the
/// numbers that the operands are.
static std::optional<SizeExpr> evaluate(BinaryKind kind, const SizeExpr &left, const SizeExpr &right, Type type) {
  auto x = settled(left, type), y = settled(right, type);
  if (!x || !y)
    return std::nullopt;
  const SizeExpr &a = *x, &b = *y;
  bool isFloat = isa<FloatType>(type), mayBeMinusZero = !(a.isKnownNonNegative() && b.isKnownNonNegative());
  switch (kind) {
  case BinaryKind::add: return kept(SizeExpr::exactSum(left, right), type);
  case BinaryKind::sub: return kept(SizeExpr::exactSum(left, right, -1), type);
  case BinaryKind::mul: return kept(SizeExpr::exactProduct(left, right), type, mayBeMinusZero);
  case BinaryKind::div: return isFloat ? kept(dividedExactly(a, b), type, mayBeMinusZero) : divided(a, b, type);
  case BinaryKind::mod:
    if (b.isConstant(0) || (isFloat && mayBeMinusZero))
      return std::nullopt;
    return SizeExpr::mod(a, b);
  case BinaryKind::min: return SizeExpr::min(a, b);
  case BinaryKind::max: return SizeExpr::max(a, b);
  case BinaryKind::eq: return SizeExpr::eq(a, b);
  case BinaryKind::ne: return SizeExpr(1) - SizeExpr::eq(a, b);
  case BinaryKind::lt: return SizeExpr::lt(a, b);
  case BinaryKind::gt: return SizeExpr::lt(b, a);
  case BinaryKind::le: return SizeExpr(1) - SizeExpr::lt(b, a);
  case BinaryKind::ge: return SizeExpr(1) - SizeExpr::lt(a, b);
  case BinaryKind::bit_and: return a * b; // of i1, as the next two
  case BinaryKind::bit_or: return SizeExpr::max(a, b);
  case BinaryKind::bit_xor: return SizeExpr(1) - SizeExpr::eq(a, b);
  default: return std::nullopt;
  }
}

static bool isComparison(BinaryKind kind) { return kind >= BinaryKind::eq; }

static bool takesFloatOnly(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::abs:
  case UnaryKind::neg:
  case UnaryKind::sign:
  case UnaryKind::relu:
  case UnaryKind::logical_not:
  case UnaryKind::bitwise_not: return false;
  default: return true;
  }
}

LogicalResult UnaryOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  Type element = input.elementType;
  bool isBool = element.isInteger(1);
  bool legal = getKind() == UnaryKind::logical_not   ? isBool
               : getKind() == UnaryKind::bitwise_not ? isa<IntegerType>(element) && !isBool
               : takesFloatOnly(getKind())           ? isa<FloatType>(element)
                                                     : !isBool && element.isIntOrFloat();
  if (!legal)
    return inference.error("C1: " + stringifyUnaryKind(getKind()) + " is not defined for this element type");
  std::optional<SizeVector> contents;
  if (isTracked(input)) {
    contents.emplace();
    for (const SizeExpr &x : *input.contents) {
      auto value = evaluate(getKind(), x, element);
      if (!value) {
        contents.reset();
        break;
      }
      contents->push_back(*value);
    }
  }
  if (getKind() == UnaryKind::is_nan)
    element = IntegerType::get(getContext(), 1);
  inference.addResult(element, input.sizes, std::move(contents));
  return success();
}

LogicalResult BinaryOp::inferResults(Inference &inference) {
  const TensorFacts &lhs = inference.operand(0), &rhs = inference.operand(1);
  BinaryKind kind = getKind();
  bool mixed = kind == BinaryKind::pow;
  if (lhs.elementType != rhs.elementType && !mixed)
    return inference.error("C1: operands have different element types");
  bool isBool = lhs.elementType.isInteger(1);
  bool isBitwise = kind >= BinaryKind::bit_and && kind <= BinaryKind::bit_xor;
  bool isShift = kind == BinaryKind::shift_left || kind == BinaryKind::shift_right;
  bool isEquality = kind == BinaryKind::eq || kind == BinaryKind::ne;
  bool legal = isBool ? isBitwise || isEquality : isBitwise || isShift ? isa<IntegerType>(lhs.elementType) : true;
  if (!legal)
    return inference.error("C3: " + stringifyBinaryKind(kind) + " is not defined for this element type");
  auto sizes = inference.broadcast(lhs.sizes, rhs.sizes);
  if (!sizes)
    return failure();
  std::optional<SizeVector> contents;
  if (isTracked(lhs) && isTracked(rhs) && product(*sizes).constant() && (!isBitwise || isBool)) {
    SizeVector left = broadcastContents(lhs, *sizes), right = broadcastContents(rhs, *sizes);
    contents.emplace();
    for (auto [a, b] : llvm::zip_equal(left, right)) {
      auto value = evaluate(kind, a, b, lhs.elementType);
      if (!value) {
        contents.reset();
        break;
      }
      contents->push_back(*value);
    }
  }
  Type element = isComparison(kind) ? IntegerType::get(getContext(), 1) : lhs.elementType;
  inference.addResult(element, *sizes, std::move(contents));
  return success();
}

std::optional<unsigned> BinaryOp::scannedOperand() {
  bool divides = getKind() == BinaryKind::div || getKind() == BinaryKind::mod || getKind() == BinaryKind::fmod;
  return divides && isa<IntegerType>(getElementTypeOrSelf(getRhs())) ? std::optional(1u) : std::nullopt;
}

LogicalResult SelectOp::inferResults(Inference &inference) {
  const TensorFacts &condition = inference.operand(0), &yes = inference.operand(1), &no = inference.operand(2);
  if (!condition.elementType.isInteger(1))
    return inference.error("C1: the condition must be i1");
  if (yes.elementType != no.elementType)
    return inference.error("C2: the values have different element types");
  auto values = inference.broadcast(yes.sizes, no.sizes);
  auto sizes = values ? inference.broadcast(condition.sizes, *values) : std::nullopt;
  if (!sizes)
    return failure();
  std::optional<SizeVector> contents;
  if (isTracked(condition) && isTracked(yes) && isTracked(no) && product(*sizes).constant()) {
    SizeVector c = broadcastContents(condition, *sizes), a = broadcastContents(yes, *sizes),
               b = broadcastContents(no, *sizes);
    contents.emplace();
    for (size_t i = 0; i < c.size(); ++i)
      contents->push_back(SizeExpr::select(c[i], a[i], b[i]));
  }
  inference.addResult(yes.elementType, *sizes, std::move(contents));
  return success();
}

/// An element in another type.
static std::optional<SizeExpr> converted(const SizeExpr &element, Type from, Type to) {
  bool isInteger = isa<IntegerType>(from) && isa<IntegerType>(to);
  bool truncates = isInteger && !to.isInteger(1) && to.getIntOrFloatBitWidth() <= from.getIntOrFloatBitWidth();
  if (from == to || (truncates && !element.constant()))
    return element; // congruent in fewer bits, too
  auto value = settled(element, from);
  if (!value)
    return std::nullopt;
  if (to.isInteger(1))
    return SizeExpr(1) - SizeExpr::eq(*value, 0);
  bool isFromFloat = isa<FloatType>(from);
  // What a type cannot hold is no number of it; only integers wrap.
  if (isFromFloat && value->constant() && settled(*value, to) != *value)
    return std::nullopt;
  // A float that was rounded is no number of its interval, as an integer that wrapped is.
  if (isFromFloat && isa<IntegerType>(to) && value->mayFail())
    return forSizes(*value, to);
  return isFromFloat || isa<FloatType>(to) || truncates ? settled(*value, to) : value;
}

LogicalResult CastOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  Type to = getTo();
  if (!input.elementType.isIntOrFloat() || !to.isIntOrFloat())
    return inference.error("C1: only integer and float types convert");
  std::optional<SizeVector> contents;
  if (input.contents && (isTracked(to) || to == input.elementType)) {
    contents.emplace();
    for (const SizeExpr &element : *input.contents) {
      auto value = converted(element, input.elementType, to);
      if (!value) {
        contents.reset();
        break;
      }
      contents->push_back(*value);
    }
  }
  inference.addResult(to, input.sizes, std::move(contents));
  return success();
}

LogicalResult BitcastOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (!input.elementType.isIntOrFloat() || !getTo().isIntOrFloat())
    return inference.error("C1: only integer and float types have bits");
  auto bits = [](Type type) { return std::max(8u, type.getIntOrFloatBitWidth()); };
  if (bits(input.elementType) != bits(getTo()))
    return inference.error("C2: elements of the two types must take equally many bits");
  inference.addResult(getTo(), input.sizes);
  return success();
}

LogicalResult DropoutOp::inferResults(Inference &inference) {
  if (!isa<FloatType>(inference.operand(0).elementType))
    return inference.error("C1: the element type must be a float");
  double ratio = getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return inference.error("C2: the ratio must be at least 0 and below 1, found " + std::to_string(ratio));
  inference.addResult(inference.operand(0).elementType, inference.operand(0).sizes);
  return success();
}

LogicalResult GeluOp::inferResults(Inference &inference) {
  if (!isa<FloatType>(inference.operand(0).elementType))
    return inference.error("C1: the element type must be a float");
  inference.addResult(inference.operand(0).elementType, inference.operand(0).sizes);
  return success();
}
