// What the elementwise functions of the ds dialect compute, step by step, written once for all who evaluate them. The
// steps are those of an emitter: HostScalars computes them on numbers (folding, packaging), IrScalars of codegen writes
// them as arith and math ops. So a folded constant has the bits that a kernel would have computed.
//
// Rules that ONNX leaves open: docs/rationale/scalars.md.
#ifndef DEEPSTRIDE_DIALECTS_DS_SCALARFUNCTIONS_H
#define DEEPSTRIDE_DIALECTS_DS_SCALARFUNCTIONS_H

#include "dialects/ds/DsDialect.h"

#include <limits>

namespace deepstride {

/// What scalars are computed in: i1 for booleans, f32 for f16, bf16 and narrower floats, whole bytes for integers.
enum class ScalarType { i1, i8, i16, i32, i64, f32, f64 };

inline bool isFloat(ScalarType type) { return type >= ScalarType::f32; }
inline unsigned widthOf(ScalarType type) {
  static constexpr unsigned widths[] = {1, 8, 16, 32, 64, 32, 64};
  return widths[static_cast<unsigned>(type)];
}

/// What an element type says of the scalars that stand for its elements.
struct ElementInfo {
  mlir::Type type;
  ScalarType compute;
  bool isFloat = false;
  bool isUnsigned = false; // booleans are
  unsigned width = 0;      // bits of the element, which may be less than those of `compute`
  /// Whether `compute` holds values that the element type does not.
  bool isNarrow() const { return width != widthOf(compute); }

  /// Nothing for types that no scalar stands for.
  static std::optional<ElementInfo> of(mlir::Type type);
};

enum class Compare { eq, ne, lt, le, gt, ge, unordered }; // of floats all but ne and unordered are false for NaN

/// `Emitter` has a type Value and the steps used here. Integers wrap; `divide` and `remainder` of integers are asked
/// only where they are defined; `libmUnless` takes libm's function of x where a condition fails, which is rare.
template <typename Emitter> class ScalarFunctions {
public:
  using Value = typename Emitter::Value;
  explicit ScalarFunctions(Emitter &e) : e(e) {}

  /// The element that the op computes from one element of each operand. Nothing for ops that are not functions.
  std::optional<Value> pointwise(mlir::Operation *op, llvm::ArrayRef<Value> operands, llvm::ArrayRef<ElementInfo> types,
                                 const ElementInfo &result) {
    if (auto unary = mlir::dyn_cast<ds::UnaryOp>(op))
      return this->unary(unary.getKind(), operands[0], types[0]);
    if (auto binary = mlir::dyn_cast<ds::BinaryOp>(op))
      return this->binary(binary.getKind(), operands[0], operands[1], types[0], types[1]);
    if (mlir::isa<ds::SelectOp>(op))
      return e.select(operands[0], operands[1], operands[2]);
    if (mlir::isa<ds::CastOp>(op))
      return cast(operands[0], types[0], result);
    if (mlir::isa<ds::BitcastOp>(op))
      return e.reinterpret(operands[0], types[0], result);
    if (auto gelu = mlir::dyn_cast<ds::GeluOp>(op))
      return this->gelu(gelu.getKind(), operands[0]);
    if (mlir::isa<ds::BroadcastOp>(op))
      return operands[0];
    return std::nullopt;
  }

  Value unary(ds::UnaryKind kind, Value x, const ElementInfo &type);
  /// `exponent` is the type of the right operand, which only pow may choose freely.
  Value binary(ds::BinaryKind kind, Value x, Value y, const ElementInfo &type, const ElementInfo &exponent);
  Value cast(Value x, const ElementInfo &from, const ElementInfo &to);
  Value gelu(ds::GeluKind kind, Value x);

  // f32 only. Greatest errors: codegen/cpu/ExpandMath.cpp.
  Value exp(Value x);
  Value expm1(Value x);
  Value log(Value x);
  Value log1p(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  Value sin(Value x);
  Value cos(Value x);
  Value asin(Value x);
  Value acos(Value x);
  Value atan(Value x);
  /// e^x for x <= 0, as `exp` but for one rounding; 0 below -87, where it nearly is subnormal.
  Value expOfNonpositive(Value x);
  /// The same with the subnormal numbers below -87.
  Value gradualExpOfNonpositive(Value x);
  /// 1 - erf x for x >= 0.
  Value erfcOfSize(Value x);

private:
  Value constant(Value like, double value) {
    ScalarType type = e.typeOf(like);
    return isFloat(type) ? e.real(type, value) : e.integer(type, static_cast<int64_t>(value));
  }
  Value negated(Value x) { return isFloat(e.typeOf(x)) ? e.negate(x) : e.sub(constant(x, 0), x); }
  Value lessThan(Value x, Value y) { return e.compare(Compare::lt, x, y, false); }
  Value equals(Value x, Value y) { return e.compare(Compare::eq, x, y, false); }
  Value fitted(Value x, const ElementInfo &type) { return type.isFloat || !type.isNarrow() ? x : e.rounded(x, type); }
  Value sigmoid(Value x);
  Value quotient(Value x, Value y, bool isUnsigned, bool wantsRemainder);
  Value modulo(Value x, Value y, const ElementInfo &type);
  Value power(Value x, Value y, const ElementInfo &type, const ElementInfo &exponent);
  Value realPower(Value x, Value y);
  Value wholePower(Value x, Value y, const ElementInfo &type, const ElementInfo &exponent);
  Value shift(Value x, Value y, const ElementInfo &type, bool left);
  Value roundToOdd(Value x);
  Value toInteger(Value x, ScalarType type, bool isUnsigned);
  Value toFloat(Value x, const ElementInfo &from, const ElementInfo &to);
  /// Horner's rule, highest coefficient first.
  Value polynomial(Value x, llvm::ArrayRef<float> coefficients) {
    Value sum = e.real(ScalarType::f32, coefficients.front());
    for (float coefficient : coefficients.drop_front())
      sum = e.fma(sum, x, e.real(ScalarType::f32, coefficient));
    return sum;
  }
  /// 2^r for |r| <= 1/2, highest first: minimax, by Lawson's iteration.
  static constexpr float powerCoefficients[] = {
      0x1.41fbbcp-13f, 0x1.5f3e52p-10f, 0x1.3b2d4cp-7f, 0x1.c6aee8p-5f, 0x1.ebfbdcp-3f, 0x1.62e430p-1f, 1.0f};
  static constexpr float lowLog2 = -0x1.7f7d1cp-20f; // what the upper bits of -log 2 lack
  /// x = n log 2 + rest with |rest| <= log 2 / 2; `high` is x without the upper bits of n log 2.
  struct Reduced {
    Value whole, n, high, rest; // n as i32 and as f32
  };
  Reduced reduce(Value x, float least, float greatest);
  /// e^x = mantissa * 2^n, where n is the integer that the low bits of `shifted` hold.
  struct Power {
    Value mantissa, shifted;
  };
  Power powerOf(Value x);
  /// (e^r - 1 - r) / r^2 for |r| <= log 2 / 2 (Cephes).
  Value exponentialTail(Value r) {
    return polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                          5.0000001201e-1f});
  }
  /// How often sqrt(1/2) goes into a normal number, in powers of two.
  Value exponentOf(Value bits) {
    Value beyond = e.sub(bits, e.integer(ScalarType::i32, 0x3f3504f3));
    return e.shiftRightSigned(beyond, e.integer(ScalarType::i32, 23));
  }
  Value scaledLogarithm(Value m, Value n);
  static constexpr float halfPi = 0x1.921fb6p+0f, lowHalfPi = -0x1.777a5cp-25f; // their sum is pi / 2
  Value sineOrCosine(ds::UnaryKind kind, Value x);
  Value halvedArcsine(Value magnitude, Value isFar);
  /// 2^n for an integer n in [-126, 127].
  Value powerOfTwo(Value n) {
    Value biased = e.add(n, e.integer(ScalarType::i32, 127));
    return e.bitcast(e.shiftLeft(biased, e.integer(ScalarType::i32, 23)), ScalarType::f32);
  }
  /// The same of what was rounded by adding 1.5 * 2^23: the bits of that number are shifted out. `further` is added to
  /// the exponent.
  Value shiftedPowerOfTwo(Value shifted, int64_t further = 0) {
    Value exponent = e.shiftLeft(e.bitcast(shifted, ScalarType::i32), e.integer(ScalarType::i32, 23));
    return e.bitcast(e.add(exponent, e.integer(ScalarType::i32, (127 + further) << 23)), ScalarType::f32);
  }

  Emitter &e;
};

template <typename E>
typename E::Value ScalarFunctions<E>::unary(ds::UnaryKind kind, Value x, const ElementInfo &type) {
  switch (kind) {
  case ds::UnaryKind::abs:
    if (type.isFloat)
      return e.function(kind, x);
    // The least integer wraps to itself.
    return type.isUnsigned ? x : fitted(e.max(x, negated(x), false), type);
  case ds::UnaryKind::neg: return fitted(negated(x), type);
  case ds::UnaryKind::reciprocal: return e.divide(constant(x, 1), x, false);
  case ds::UnaryKind::sigmoid: return sigmoid(x);
  case ds::UnaryKind::relu:
    if (type.isFloat) // NaN stays; one instruction, which the greater of two is not
      return e.select(lessThan(x, constant(x, 0)), constant(x, 0), x);
    return type.isUnsigned ? x : e.max(x, constant(x, 0), false);
  case ds::UnaryKind::sign: {
    Value zero = constant(x, 0), one = constant(x, 1);
    if (type.isUnsigned)
      return e.select(equals(x, zero), zero, one);
    // A float that is neither greater nor less is itself: NaN and signed zero.
    Value rest = e.select(lessThan(x, zero), constant(x, -1), type.isFloat ? x : zero);
    return e.select(lessThan(zero, x), one, rest);
  }
  case ds::UnaryKind::logical_not:
  case ds::UnaryKind::bitwise_not: return fitted(e.bitXor(x, constant(x, -1)), type);
  case ds::UnaryKind::is_nan: return e.compare(Compare::unordered, x, x, false);
  default: return e.function(kind, x);
  }
}

template <typename E>
typename E::Value ScalarFunctions<E>::binary(ds::BinaryKind kind, Value x, Value y, const ElementInfo &type,
                                             const ElementInfo &exponent) {
  bool isUnsigned = type.isUnsigned;
  switch (kind) {
  case ds::BinaryKind::add: return fitted(e.add(x, y), type);
  case ds::BinaryKind::sub: return fitted(e.sub(x, y), type);
  case ds::BinaryKind::mul: return fitted(e.mul(x, y), type);
  case ds::BinaryKind::div:
    return type.isFloat ? e.divide(x, y, false) : fitted(quotient(x, y, isUnsigned, false), type);
  case ds::BinaryKind::pow: return power(x, y, type, exponent);
  case ds::BinaryKind::fmod: return type.isFloat ? e.remainder(x, y, false) : quotient(x, y, isUnsigned, true);
  case ds::BinaryKind::mod: return modulo(x, y, type);
  case ds::BinaryKind::min: return e.min(x, y, isUnsigned);
  case ds::BinaryKind::max: return e.max(x, y, isUnsigned);
  case ds::BinaryKind::bit_and: return e.bitAnd(x, y);
  case ds::BinaryKind::bit_or: return e.bitOr(x, y);
  case ds::BinaryKind::bit_xor: return e.bitXor(x, y);
  case ds::BinaryKind::shift_left: return shift(x, y, type, true);
  case ds::BinaryKind::shift_right: return shift(x, y, type, false);
  case ds::BinaryKind::eq: return e.compare(Compare::eq, x, y, isUnsigned);
  case ds::BinaryKind::ne: return e.compare(Compare::ne, x, y, isUnsigned);
  case ds::BinaryKind::lt: return e.compare(Compare::lt, x, y, isUnsigned);
  case ds::BinaryKind::le: return e.compare(Compare::le, x, y, isUnsigned);
  case ds::BinaryKind::gt: return e.compare(Compare::gt, x, y, isUnsigned);
  case ds::BinaryKind::ge: return e.compare(Compare::ge, x, y, isUnsigned);
  }
  llvm_unreachable("all kinds handled");
}

/// Integer division that no operands make undefined. A zero divisor has ended the call before; here it counts as 1.
template <typename E>
typename E::Value ScalarFunctions<E>::quotient(Value x, Value y, bool isUnsigned, bool wantsRemainder) {
  Value one = constant(x, 1), divisor = e.select(equals(y, constant(x, 0)), one, y);
  if (isUnsigned)
    return wantsRemainder ? e.remainder(x, divisor, true) : e.divide(x, divisor, true);
  // The least integer divided by -1 overflows: negation wraps instead.
  Value isMinusOne = equals(y, constant(x, -1));
  divisor = e.select(isMinusOne, one, divisor);
  if (wantsRemainder)
    return e.remainder(x, divisor, false);
  return e.select(isMinusOne, negated(x), e.divide(x, divisor, false));
}

/// The remainder with the sign of the divisor.
template <typename E> typename E::Value ScalarFunctions<E>::modulo(Value x, Value y, const ElementInfo &type) {
  Value rest = type.isFloat ? e.remainder(x, y, false) : quotient(x, y, type.isUnsigned, true);
  if (type.isUnsigned)
    return rest;
  Value zero = constant(x, 0);
  Value isRest = type.isFloat ? e.bitOr(lessThan(rest, zero), lessThan(zero, rest)) // NaN stays
                              : e.compare(Compare::ne, rest, zero, false);
  Value differs = e.bitXor(lessThan(rest, zero), lessThan(y, zero));
  return e.select(e.bitAnd(isRest, differs), e.add(rest, y), rest);
}

template <typename E>
typename E::Value ScalarFunctions<E>::power(Value x, Value y, const ElementInfo &type, const ElementInfo &exponent) {
  ElementInfo base = type;
  if (type.isFloat) {
    base.type = {}; // the exponent is not rounded to the base's own type
    base.width = widthOf(type.compute);
    return realPower(x, cast(y, exponent, base));
  }
  if (!exponent.isFloat)
    return wholePower(x, y, type, exponent);
  ElementInfo wide{{}, ScalarType::f64, true, false, 64};
  return cast(realPower(cast(x, type, wide), cast(y, exponent, wide)), wide, type);
}

// Small exponents are products, so that a constant exponent may be one without changing a bit.
template <typename E> typename E::Value ScalarFunctions<E>::realPower(Value x, Value y) {
  auto is = [&](double value) { return equals(y, constant(y, value)); };
  Value square = e.mul(x, x), infinity = constant(x, std::numeric_limits<double>::infinity());
  Value root = e.function(ds::UnaryKind::sqrt, e.add(x, constant(x, 0))); // pow makes 0 of -0
  Value result = e.power(x, y);
  result = e.select(is(0.5), e.select(equals(x, e.negate(infinity)), infinity, root), result);
  result = e.select(is(-1), e.divide(constant(x, 1), x, false), result);
  result = e.select(is(1), x, result);
  result = e.select(is(2), square, result);
  return e.select(is(3), e.mul(square, x), result);
}

/// Square and multiply, which wraps at every step. A negative exponent truncates: 0, but for bases of 1 and -1.
template <typename E>
typename E::Value ScalarFunctions<E>::wholePower(Value x, Value y, const ElementInfo &type,
                                                 const ElementInfo &exponent) {
  Value one = constant(x, 1), zero = constant(x, 0), result = one, square = x;
  ScalarType counts = e.typeOf(y);
  auto bit = [&](unsigned i) {
    Value low = counts == ScalarType::i1 ? y : e.bitAnd(e.shiftRight(y, e.integer(counts, i)), e.integer(counts, 1));
    return e.compare(Compare::ne, low, e.integer(counts, 0), false);
  };
  for (unsigned i = 0; i < exponent.width; ++i) {
    result = e.select(bit(i), e.mul(result, square), result);
    square = e.mul(square, square);
  }
  if (!exponent.isUnsigned) {
    Value sign = e.select(bit(0), constant(x, -1), one);
    Value small = type.isUnsigned ? zero : e.select(equals(x, constant(x, -1)), sign, zero);
    Value truncated = e.select(equals(x, one), one, small);
    result = e.select(lessThan(y, e.integer(counts, 0)), truncated, result);
  }
  return fitted(result, type);
}

/// Shifts fill with zeros; by the width of the type or more they give 0.
template <typename E>
typename E::Value ScalarFunctions<E>::shift(Value x, Value y, const ElementInfo &type, bool left) {
  Value zero = constant(x, 0);
  if (type.isNarrow())
    x = e.bitAnd(x, e.integer(type.compute, (int64_t(1) << type.width) - 1));
  Value inRange = e.compare(Compare::lt, y, e.integer(type.compute, type.width), true);
  Value amount = e.select(inRange, y, zero);
  return fitted(e.select(inRange, left ? e.shiftLeft(x, amount) : e.shiftRight(x, amount), zero), type);
}

/// f64 to f32, rounded to odd: an inexact result gets an odd last bit, so that rounding it once more to f16 or bf16
/// gives what one rounding would (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
template <typename E> typename E::Value ScalarFunctions<E>::roundToOdd(Value x) {
  Value nearest = e.floatTo(x, ScalarType::f32), back = e.floatTo(nearest, ScalarType::f64);
  Value isAway = lessThan(e.function(ds::UnaryKind::abs, x), e.function(ds::UnaryKind::abs, back));
  Value isInexact = e.bitOr(lessThan(x, back), lessThan(back, x));
  Value bits = e.bitcast(nearest, ScalarType::i32);
  // One less is the next number towards zero, also from infinity to the largest finite one.
  Value truncated = e.sub(bits, e.integerTo(isAway, ScalarType::i32, true));
  return e.bitcast(e.bitOr(truncated, e.integerTo(isInexact, ScalarType::i32, true)), ScalarType::f32);
}

/// Truncated. What no 32-bit integer holds is the least one, as processors have it, and types of fewer bits take the
/// low ones; 64-bit integers stand for types that need them.
template <typename E> typename E::Value ScalarFunctions<E>::toInteger(Value x, ScalarType type, bool isUnsigned) {
  ScalarType wide =
      type == ScalarType::i64 || (type == ScalarType::i32 && isUnsigned) ? ScalarType::i64 : ScalarType::i32;
  bool is64 = wide == ScalarType::i64;
  Value limit = constant(x, is64 ? 0x1p63 : 0x1p31);
  auto convert = [&](Value value) {
    Value inRange = lessThan(e.function(ds::UnaryKind::abs, value), limit);
    Value whole = e.floatToInteger(e.select(inRange, value, constant(x, 0)), wide);
    return e.select(inRange, whole, e.integer(wide, is64 ? INT64_MIN : INT32_MIN));
  };
  Value result = convert(x);
  if (type == ScalarType::i64 && isUnsigned) { // the upper half
    Value upper = e.bitAnd(e.compare(Compare::ge, x, limit, false), lessThan(x, constant(x, 0x1p64)));
    Value flipped = e.bitXor(convert(e.sub(x, limit)), e.integer(wide, INT64_MIN));
    result = e.select(upper, flipped, result);
  }
  return e.integerTo(result, type, true);
}

template <typename E>
typename E::Value ScalarFunctions<E>::toFloat(Value x, const ElementInfo &from, const ElementInfo &to) {
  // Integers that f32 rounds would be rounded twice. f16 ends before the first of them.
  bool roundsTwice = to.isNarrow() && !to.type.isF16() && from.width >= 32;
  if (!roundsTwice)
    return e.integerToFloat(x, to.compute, from.isUnsigned);
  if (from.width == 64) { // what f64 does not hold exactly is rounded to odd there
    Value low = e.integer(ScalarType::i64, 0x7ff), bit = e.integer(ScalarType::i64, 0x800);
    Value isInexact = e.compare(Compare::ne, e.bitAnd(x, low), e.integer(ScalarType::i64, 0), false);
    Value odd = e.select(isInexact, e.bitOr(x, bit), x);
    Value top = e.bitAnd(odd, e.integer(ScalarType::i64, ~int64_t(0x7ff)));
    Value size = from.isUnsigned ? x : e.max(x, negated(x), false);
    Value isSmall = e.compare(Compare::lt, size, e.integer(ScalarType::i64, int64_t(1) << 53), true);
    x = e.select(isSmall, x, top);
  }
  return roundToOdd(e.integerToFloat(x, ScalarType::f64, from.isUnsigned));
}

template <typename E>
typename E::Value ScalarFunctions<E>::cast(Value x, const ElementInfo &from, const ElementInfo &to) {
  if (to.compute == ScalarType::i1)
    return from.compute == ScalarType::i1 ? x : e.compare(Compare::ne, x, constant(x, 0), false);
  auto stored = [&](Value value) { return to.isNarrow() ? e.rounded(value, to) : value; };
  if (!from.isFloat)
    return stored(to.isFloat ? toFloat(x, from, to) : e.integerTo(x, to.compute, from.isUnsigned));
  if (!to.isFloat)
    return stored(toInteger(x, to.compute, to.isUnsigned));
  bool roundsTwice = to.isNarrow() && from.compute == ScalarType::f64;
  return stored(roundsTwice ? roundToOdd(x) : e.floatTo(x, to.compute));
}

/// n log 2 + log(1 + m) for 1 + m in [sqrt(1/2), sqrt(2)), by Cephes' polynomial.
template <typename E> typename E::Value ScalarFunctions<E>::scaledLogarithm(Value m, Value n) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value square = e.mul(m, m);
  Value p = polynomial(m, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                           -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  Value y = e.mul(e.mul(m, square), p);
  y = e.fma(n, real(-2.12194440e-4f), y);
  y = e.fma(square, real(-0.5f), y);
  return e.fma(n, real(0.693359375f), e.add(m, y));
}

// x = 2^n (1 + m).
template <typename E> typename E::Value ScalarFunctions<E>::log(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value isSmall = lessThan(x, real(0x1p-126f)); // subnormals get a normal exponent
  Value scaled = e.bitcast(e.select(isSmall, e.mul(x, real(0x1p23f)), x), ScalarType::i32);
  Value exponent = exponentOf(scaled);
  Value mantissa = e.sub(scaled, e.shiftLeft(exponent, e.integer(ScalarType::i32, 23)));
  Value m = e.sub(e.bitcast(mantissa, ScalarType::f32), real(1.0f));
  Value n = e.integerToFloat(exponent, ScalarType::f32, false);
  n = e.select(isSmall, e.sub(n, real(23.0f)), n);
  Value result = scaledLogarithm(m, n);
  // Infinity and NaN, then zero, then what is negative.
  constexpr float infinity = std::numeric_limits<float>::infinity();
  result = e.select(lessThan(x, real(infinity)), result, x);
  result = e.select(equals(x, real(0.0f)), real(-infinity), result);
  return e.select(lessThan(x, real(0.0f)), real(std::numeric_limits<float>::quiet_NaN()), result);
}

// 1 + x = 2^n (1 + m) with m = 2^-n x + (2^-n - 1), which has all digits of x: the sum 1 + x, which has not, only
// chooses n. For n = 0 m is x, else x is normal and its exponent may be moved. 4 * 2^-n is normal for all n up to 128.
template <typename E> typename E::Value ScalarFunctions<E>::log1p(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value exponent = exponentOf(e.bitcast(e.add(x, real(1.0f)), ScalarType::i32));
  Value shift = e.shiftLeft(exponent, e.integer(ScalarType::i32, 23));
  Value scaled = e.bitcast(e.sub(e.bitcast(x, ScalarType::i32), shift), ScalarType::f32);
  Value fourfold = e.bitcast(e.sub(e.integer(ScalarType::i32, 0x40800000), shift), ScalarType::f32);
  Value m = e.add(scaled, e.fma(fourfold, real(0.25f), real(-1.0f)));
  Value result = scaledLogarithm(m, e.integerToFloat(exponent, ScalarType::f32, false));
  result = e.copySign(result, x); // of zeros
  // Infinity and NaN, then -1, then what is less.
  constexpr float infinity = std::numeric_limits<float>::infinity();
  result = e.select(lessThan(x, real(infinity)), result, x);
  result = e.select(equals(x, real(-1.0f)), real(-infinity), result);
  return e.select(lessThan(x, real(-1.0f)), real(std::numeric_limits<float>::quiet_NaN()), result);
}

// An odd polynomial near zero, 1 - exp q(|x|) elsewhere; both minimax (N. Juffa).
template <typename E> typename E::Value ScalarFunctions<E>::erf(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value magnitude = e.function(ds::UnaryKind::abs, x), square = e.mul(x, x);
  Value p = polynomial(
      square, {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f});
  Value near = e.fma(p, x, x);
  // Beyond 4 the result is 1; the polynomial must not be asked there. NaN stays.
  Value t = e.select(lessThan(real(4.0f), magnitude), real(4.0f), magnitude);
  Value q = polynomial(t, {-1.72853470e-5f, 3.83197126e-4f, -3.88396438e-3f, 2.42546219e-2f, -1.06777877e-1f,
                           -6.34846687e-1f, -1.28717512e-1f});
  Value far = e.copySign(e.sub(real(1.0f), exp(e.fma(q, t, e.negate(t)))), x);
  return e.select(lessThan(real(0.927734375f), magnitude), far, near);
}

} // namespace deepstride

#include "dialects/ds/CircularFunctions.h"
#include "dialects/ds/ExponentialFunctions.h"
#include "dialects/ds/GeluFunctions.h"

#endif
