// Shape rules of elementwise ops. Integer tensors carry symbolic contents through them: this is how shape arithmetic
// (Shape, Gather, Mul, Concat, Reshape) is evaluated without running it.
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

// Narrow and unsigned integers wrap and small floats round, which polynomials over the integers do not.
static bool isTracked(const TensorFacts &facts) {
  Type type = facts.elementType;
  bool isExact =
      type.isSignlessInteger(64) || type.isSignlessInteger(32) || type.isInteger(1) || type.isF32() || type.isF64();
  return facts.contents.has_value() && isExact;
}

static std::optional<SizeExpr> evaluate(UnaryKind kind, const SizeExpr &x) {
  switch (kind) {
  case UnaryKind::neg: return SizeExpr(0) - x;
  case UnaryKind::abs: return x.isKnownNonNegative() ? x : SizeExpr::max(x, SizeExpr(0) - x);
  case UnaryKind::logical_not: return SizeExpr(1) - x;
  case UnaryKind::relu: return SizeExpr::max(x, 0);
  case UnaryKind::floor:
  case UnaryKind::ceil:
  case UnaryKind::round: return x;
  default: return std::nullopt;
  }
}

static std::optional<SizeExpr> evaluate(BinaryKind kind, const SizeExpr &a, const SizeExpr &b) {
  switch (kind) {
  case BinaryKind::add: return a + b;
  case BinaryKind::sub: return a - b;
  case BinaryKind::mul: return a * b;
  case BinaryKind::div: // truncation equals floor where nothing is negative
    return a.isKnownNonNegative() && b.isKnownNonNegative() && !b.isConstant(0)
               ? std::optional(SizeExpr::floorDiv(a, b))
               : std::nullopt;
  case BinaryKind::mod: return b.isConstant(0) ? std::nullopt : std::optional(SizeExpr::mod(a, b));
  case BinaryKind::min: return SizeExpr::min(a, b);
  case BinaryKind::max: return SizeExpr::max(a, b);
  case BinaryKind::eq: return SizeExpr::eq(a, b);
  case BinaryKind::ne: return SizeExpr(1) - SizeExpr::eq(a, b);
  case BinaryKind::lt: return SizeExpr::lt(a, b);
  case BinaryKind::gt: return SizeExpr::lt(b, a);
  case BinaryKind::le: return SizeExpr(1) - SizeExpr::lt(b, a);
  case BinaryKind::ge: return SizeExpr(1) - SizeExpr::lt(a, b);
  case BinaryKind::bit_and: return a * b; // only reached for i1
  default: return std::nullopt;
  }
}

/// Whether arithmetic on whole numbers loses what the type does: the sign of a zero, and the wrap of an i32.
static bool losesBits(Type type, const SizeExpr &result, bool mayBeNegative) {
  auto known = result.constant();
  return known &&
         (isa<FloatType>(type) ? *known == 0 && mayBeNegative : type.isSignlessInteger(32) && !llvm::isInt<32>(*known));
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
      auto value = evaluate(getKind(), x);
      bool keepsSign = getKind() != UnaryKind::neg;
      if (!value || losesBits(element, *value, !keepsSign || !x.isKnownNonNegative())) {
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
      bool isInexact = kind == BinaryKind::bit_xor || (kind == BinaryKind::div && isa<FloatType>(lhs.elementType) &&
                                                       SizeExpr::floorDiv(a, b) * b != a);
      auto value = isInexact                    ? std::nullopt
                   : kind == BinaryKind::bit_or ? std::optional(SizeExpr::max(a, b))
                                                : evaluate(kind, a, b);
      bool mayBeNegative = kind == BinaryKind::mul && (!a.isKnownNonNegative() || !b.isKnownNonNegative());
      if (!value || (!isComparison(kind) && losesBits(lhs.elementType, *value, mayBeNegative))) {
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

LogicalResult CastOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  Type to = getTo();
  if (!input.elementType.isIntOrFloat() || !to.isIntOrFloat())
    return inference.error("C1: only integer and float types convert");
  std::optional<SizeVector> contents = input.contents;
  // Narrowing may change a value that is not known; f32 and f64 hold sizes exactly as far as shape arithmetic goes.
  bool fits =
      to.isSignlessInteger(64) || to.isSignlessInteger(32) || to.isF32() || to.isF64() || to == input.elementType;
  if (contents && (to.isF32() || to.isSignlessInteger(32)))
    for (const SizeExpr &value : *contents)
      if (auto known = value.constant())
        fits &= std::abs(*known) <= (to.isF32() ? int64_t(1) << 24 : int64_t(INT32_MAX));
  if (contents && to.isInteger(1))
    for (SizeExpr &value : *contents)
      value = SizeExpr(1) - SizeExpr::eq(value, 0);
  else if (!fits)
    contents.reset();
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

LogicalResult GeluOp::inferResults(Inference &inference) {
  if (!isa<FloatType>(inference.operand(0).elementType))
    return inference.error("C1: the element type must be a float");
  inference.addResult(inference.operand(0).elementType, inference.operand(0).sizes);
  return success();
}
