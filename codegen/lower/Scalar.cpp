// Elementwise functions as arith and math ops on one element; vectorization widens them later.
#include "codegen/lower/Scalar.h"

#include "codegen/lower/NarrowTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace deepstride {

Type storageType(Type element) {
  if (element.isInteger(1) || isNarrowFloat(element) || isNarrowInteger(element))
    return IntegerType::get(element.getContext(), 8);
  if (element.isBF16()) // as bits: LLVM promotes even copies of bf16 through a function that libgcc 12 lacks
    return IntegerType::get(element.getContext(), 16);
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
}

Type computeType(Type element) {
  if (element.isInteger(1))
    return element;
  if (element.isF16() || element.isBF16() || isNarrowFloat(element))
    return Float32Type::get(element.getContext());
  return storageType(element);
}

int64_t storageBytes(Type element) { return storageType(element).getIntOrFloatBitWidth() / 8; }

static Value integerConstant(OpBuilder &b, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

Value fromStorage(OpBuilder &b, Location loc, Value raw, Type element) {
  if (element.isInteger(1))
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, raw, integerConstant(b, loc, raw.getType(), 0));
  if (element.isF16())
    return arith::ExtFOp::create(b, loc, computeType(element), raw);
  if (element.isBF16()) { // the upper half of an f32: exact, and needs no library
    Type i32 = b.getI32Type();
    Value bits = arith::ExtUIOp::create(b, loc, i32, raw);
    return arith::BitcastOp::create(b, loc, b.getF32Type(),
                                    arith::ShLIOp::create(b, loc, bits, integerConstant(b, loc, i32, 16)));
  }
  if (isNarrowFloat(element))
    return decodeNarrowFloat(b, loc, raw, element);
  return raw;
}

Value toStorage(OpBuilder &b, Location loc, Value value, Type element) {
  if (element.isInteger(1))
    return arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  if (element.isF16())
    return arith::TruncFOp::create(b, loc, element, value);
  if (element.isBF16()) {
    // Round to nearest even in integers: below native BF16 LLVM would call a function that libgcc 12 lacks.
    Type i32 = b.getI32Type();
    Value bits = arith::BitcastOp::create(b, loc, i32, value);
    Value odd = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, bits, integerConstant(b, loc, i32, 16)),
                                      integerConstant(b, loc, i32, 1));
    Value rounded =
        arith::AddIOp::create(b, loc, bits, arith::AddIOp::create(b, loc, odd, integerConstant(b, loc, i32, 0x7fff)));
    Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
    Value quiet = arith::OrIOp::create(b, loc, bits, integerConstant(b, loc, i32, 0x400000));
    Value chosen = arith::SelectOp::create(b, loc, isNan, quiet, rounded);
    Value high = arith::ShRUIOp::create(b, loc, chosen, integerConstant(b, loc, i32, 16));
    return arith::TruncIOp::create(b, loc, b.getI16Type(), high);
  }
  if (isNarrowFloat(element))
    return encodeNarrowFloat(b, loc, value, element);
  return isNarrowInteger(element) ? wrapNarrowInteger(b, loc, value, element) : value;
}

Value scalarConstant(OpBuilder &b, Location loc, Type element, double value) {
  Type type = computeType(element);
  if (auto floating = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(floating, value));
  return integerConstant(b, loc, type, static_cast<int64_t>(value));
}

Value scalarConstant(OpBuilder &b, Location loc, Type element, Attribute value) {
  Type type = computeType(element);
  if (auto number = dyn_cast<FloatAttr>(value)) {
    APFloat wide = number.getValue();
    if (isNarrowFloat(element) && wide.isNaN()) // the conversion below makes infinity of float8e8m0's
      return arith::ConstantOp::create(
          b, loc, FloatAttr::get(type, APFloat::getNaN(cast<FloatType>(type).getFloatSemantics())));
    bool lost;
    wide.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    return arith::ConstantOp::create(b, loc, FloatAttr::get(type, wide));
  }
  APInt number = cast<IntegerAttr>(value).getValue();
  unsigned width = type.getIntOrFloatBitWidth();
  number = element.isUnsignedInteger() || element.isInteger(1) ? number.zextOrTrunc(width) : number.sextOrTrunc(width);
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(type, number));
}

template <typename FloatOp> static Value floatOp(OpBuilder &b, Location loc, Value x) {
  return FloatOp::create(b, loc, x);
}

Value emitUnary(OpBuilder &b, Location loc, ds::UnaryKind kind, Value x, Type element) {
  Type type = x.getType();
  bool isFloat = isa<FloatType>(type), isUnsigned = element.isUnsignedInteger();
  auto constant = [&](double value) { return scalarConstant(b, loc, element, value); };
  switch (kind) {
  case ds::UnaryKind::abs:
    if (isFloat || isUnsigned)
      return isFloat ? floatOp<math::AbsFOp>(b, loc, x) : x;
    return arith::MaxSIOp::create(b, loc, x,
                                  arith::SubIOp::create(b, loc, constant(0), x)); // the least one wraps to itself
  case ds::UnaryKind::neg:
    return isFloat ? floatOp<arith::NegFOp>(b, loc, x) : arith::SubIOp::create(b, loc, constant(0), x);
  case ds::UnaryKind::exp: return floatOp<math::ExpOp>(b, loc, x);
  case ds::UnaryKind::log: return floatOp<math::LogOp>(b, loc, x);
  case ds::UnaryKind::sqrt: return floatOp<math::SqrtOp>(b, loc, x);
  case ds::UnaryKind::reciprocal: return arith::DivFOp::create(b, loc, constant(1), x);
  case ds::UnaryKind::erf: return floatOp<math::ErfOp>(b, loc, x);
  case ds::UnaryKind::tanh: return floatOp<math::TanhOp>(b, loc, x);
  case ds::UnaryKind::sigmoid: {
    Value e = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x));
    return arith::DivFOp::create(b, loc, constant(1), arith::AddFOp::create(b, loc, constant(1), e));
  }
  case ds::UnaryKind::relu:
    if (isFloat)
      return arith::MaximumFOp::create(b, loc, x, constant(0));
    return isUnsigned ? x : arith::MaxSIOp::create(b, loc, x, constant(0));
  case ds::UnaryKind::sin: return floatOp<math::SinOp>(b, loc, x);
  case ds::UnaryKind::cos: return floatOp<math::CosOp>(b, loc, x);
  case ds::UnaryKind::tan: return floatOp<math::TanOp>(b, loc, x);
  case ds::UnaryKind::asin: return floatOp<math::AsinOp>(b, loc, x);
  case ds::UnaryKind::acos: return floatOp<math::AcosOp>(b, loc, x);
  case ds::UnaryKind::atan: return floatOp<math::AtanOp>(b, loc, x);
  case ds::UnaryKind::sinh: return floatOp<math::SinhOp>(b, loc, x);
  case ds::UnaryKind::cosh: return floatOp<math::CoshOp>(b, loc, x);
  case ds::UnaryKind::asinh: return floatOp<math::AsinhOp>(b, loc, x);
  case ds::UnaryKind::acosh: return floatOp<math::AcoshOp>(b, loc, x);
  case ds::UnaryKind::atanh: return floatOp<math::AtanhOp>(b, loc, x);
  case ds::UnaryKind::floor: return floatOp<math::FloorOp>(b, loc, x);
  case ds::UnaryKind::ceil: return floatOp<math::CeilOp>(b, loc, x);
  case ds::UnaryKind::round: return floatOp<math::RoundEvenOp>(b, loc, x);
  case ds::UnaryKind::sign: {
    auto compare = [&](bool greater) -> Value {
      if (isFloat)
        return arith::CmpFOp::create(b, loc, greater ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x,
                                     constant(0));
      if (isUnsigned)
        return arith::CmpIOp::create(b, loc, greater ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::ult, x,
                                     constant(0));
      return arith::CmpIOp::create(b, loc, greater ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt, x,
                                   constant(0));
    };
    Value negative = arith::SelectOp::create(b, loc, compare(false), isUnsigned ? constant(0) : constant(-1),
                                             isFloat ? x : constant(0)); // x itself keeps NaN and signed zero
    return arith::SelectOp::create(b, loc, compare(true), constant(1), negative);
  }
  case ds::UnaryKind::logical_not:
  case ds::UnaryKind::bitwise_not: return arith::XOrIOp::create(b, loc, x, integerConstant(b, loc, type, -1));
  case ds::UnaryKind::is_nan: return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  }
  llvm_unreachable("all kinds handled");
}

/// Integer division that no input can trap: the kernel has already failed on a zero divisor.
static Value safeDivision(OpBuilder &b, Location loc, Value x, Value y, bool isUnsigned, bool remainder) {
  Type type = x.getType();
  Value zero = integerConstant(b, loc, type, 0), one = integerConstant(b, loc, type, 1);
  Value isZero = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, y, zero);
  Value divisor = arith::SelectOp::create(b, loc, isZero, one, y);
  if (isUnsigned)
    return remainder ? arith::RemUIOp::create(b, loc, x, divisor).getResult()
                     : arith::DivUIOp::create(b, loc, x, divisor).getResult();
  // The least integer divided by -1 overflows: negation wraps instead.
  Value isMinusOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, y, integerConstant(b, loc, type, -1));
  divisor = arith::SelectOp::create(b, loc, isMinusOne, one, divisor);
  if (remainder)
    return arith::RemSIOp::create(b, loc, x, divisor);
  Value quotient = arith::DivSIOp::create(b, loc, x, divisor);
  return arith::SelectOp::create(b, loc, isMinusOne, arith::SubIOp::create(b, loc, zero, x), quotient);
}

static Value shift(OpBuilder &b, Location loc, Value x, Value y, bool left) {
  Value zero = integerConstant(b, loc, x.getType(), 0);
  Value width = integerConstant(b, loc, x.getType(), x.getType().getIntOrFloatBitWidth());
  Value inRange = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, y, width);
  Value amount = arith::SelectOp::create(b, loc, inRange, y, zero);
  Value shifted = left ? arith::ShLIOp::create(b, loc, x, amount).getResult()
                       : arith::ShRUIOp::create(b, loc, x, amount).getResult();
  return arith::SelectOp::create(b, loc, inRange, shifted, zero);
}

static Value power(OpBuilder &b, Location loc, Value x, Value y, Type element, Type exponent) {
  if (isa<FloatType>(x.getType())) {
    APFloat known(0.0);
    if (isa<FloatType>(y.getType()) && matchPattern(y, m_ConstantFloat(&known))) {
      double value = known.convertToDouble();
      if (value == 2.0)
        return arith::MulFOp::create(b, loc, x, x);
      if (value == 3.0)
        return arith::MulFOp::create(b, loc, arith::MulFOp::create(b, loc, x, x), x);
      if (value == 1.0)
        return x;
    }
    return math::PowFOp::create(b, loc, x, emitCast(b, loc, y, exponent, x.getType()));
  }
  // Integer bases go through f64: exact as long as the result fits 53 bits.
  Type f64 = b.getF64Type();
  Value result = math::PowFOp::create(b, loc, emitCast(b, loc, x, element, f64), emitCast(b, loc, y, exponent, f64));
  return emitCast(b, loc, result, f64, element);
}

static Value compare(OpBuilder &b, Location loc, ds::BinaryKind kind, Value x, Value y, bool isUnsigned) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  static constexpr F floats[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE};
  static constexpr I signedOnes[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  static constexpr I unsignedOnes[] = {I::eq, I::ne, I::ult, I::ule, I::ugt, I::uge};
  unsigned which = static_cast<unsigned>(kind) - static_cast<unsigned>(ds::BinaryKind::eq);
  if (isa<FloatType>(x.getType()))
    return arith::CmpFOp::create(b, loc, floats[which], x, y);
  return arith::CmpIOp::create(b, loc, isUnsigned ? unsignedOnes[which] : signedOnes[which], x, y);
}

Value emitBinary(OpBuilder &b, Location loc, ds::BinaryKind kind, Value x, Value y, Type element, Type exponent) {
  bool isFloat = isa<FloatType>(x.getType()), isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  switch (kind) {
  case ds::BinaryKind::add:
    return isFloat ? arith::AddFOp::create(b, loc, x, y).getResult() : arith::AddIOp::create(b, loc, x, y).getResult();
  case ds::BinaryKind::sub:
    return isFloat ? arith::SubFOp::create(b, loc, x, y).getResult() : arith::SubIOp::create(b, loc, x, y).getResult();
  case ds::BinaryKind::mul:
    return isFloat ? arith::MulFOp::create(b, loc, x, y).getResult() : arith::MulIOp::create(b, loc, x, y).getResult();
  case ds::BinaryKind::div:
    return isFloat ? arith::DivFOp::create(b, loc, x, y).getResult() : safeDivision(b, loc, x, y, isUnsigned, false);
  case ds::BinaryKind::pow: return power(b, loc, x, y, element, exponent);
  case ds::BinaryKind::fmod:
    return isFloat ? arith::RemFOp::create(b, loc, x, y).getResult() : safeDivision(b, loc, x, y, isUnsigned, true);
  case ds::BinaryKind::mod: {
    if (isFloat) { // the sign of the divisor
      Value r = arith::RemFOp::create(b, loc, x, y);
      Value zero = scalarConstant(b, loc, element, 0);
      Value nonZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, r, zero);
      auto isNegative = [&](Value v) { return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, v, zero); };
      Value differs = arith::XOrIOp::create(b, loc, isNegative(r), isNegative(y));
      return arith::SelectOp::create(b, loc, arith::AndIOp::create(b, loc, nonZero, differs),
                                     arith::AddFOp::create(b, loc, r, y), r);
    }
    Value r = safeDivision(b, loc, x, y, isUnsigned, true);
    if (isUnsigned)
      return r;
    Value zero = integerConstant(b, loc, x.getType(), 0);
    Value nonZero = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, r, zero);
    Value differs = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, arith::XOrIOp::create(b, loc, r, y), zero);
    return arith::SelectOp::create(b, loc, arith::AndIOp::create(b, loc, nonZero, differs),
                                   arith::AddIOp::create(b, loc, r, y), r);
  }
  case ds::BinaryKind::min: return emitCombine(b, loc, ds::ReduceKind::min, x, y, element);
  case ds::BinaryKind::max: return emitCombine(b, loc, ds::ReduceKind::max, x, y, element);
  case ds::BinaryKind::bit_and: return arith::AndIOp::create(b, loc, x, y);
  case ds::BinaryKind::bit_or: return arith::OrIOp::create(b, loc, x, y);
  case ds::BinaryKind::bit_xor: return arith::XOrIOp::create(b, loc, x, y);
  case ds::BinaryKind::shift_left: return shift(b, loc, x, y, true);
  case ds::BinaryKind::shift_right: return shift(b, loc, x, y, false);
  default: return compare(b, loc, kind, x, y, isUnsigned);
  }
}

static Value integerCast(OpBuilder &b, Location loc, Value x, Type to, bool isUnsigned) {
  unsigned from = x.getType().getIntOrFloatBitWidth(), width = to.getIntOrFloatBitWidth();
  if (from == width)
    return x;
  if (from > width)
    return arith::TruncIOp::create(b, loc, to, x);
  return isUnsigned ? arith::ExtUIOp::create(b, loc, to, x).getResult()
                    : arith::ExtSIOp::create(b, loc, to, x).getResult();
}

/// f64 to f32, rounded to odd: an inexact result gets an odd last bit, so that rounding it once more to f16 or bf16
/// gives what one rounding would (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
static Value roundToOdd(OpBuilder &b, Location loc, Value x) {
  Type i32 = b.getI32Type();
  Value nearest = arith::TruncFOp::create(b, loc, b.getF32Type(), x);
  Value back = arith::ExtFOp::create(b, loc, x.getType(), nearest);
  auto magnitude = [&](Value of) -> Value { return math::AbsFOp::create(b, loc, of); };
  Value isInexact = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, back, x);
  Value isAway = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, magnitude(back), magnitude(x));
  Value bits = arith::BitcastOp::create(b, loc, i32, nearest);
  // One less is the next number towards zero, also from infinity to the largest finite one.
  Value truncated = arith::SubIOp::create(b, loc, bits, arith::ExtUIOp::create(b, loc, i32, isAway));
  Value odd = arith::OrIOp::create(b, loc, truncated, arith::ExtUIOp::create(b, loc, i32, isInexact));
  return arith::BitcastOp::create(b, loc, b.getF32Type(), odd);
}

Value emitCast(OpBuilder &b, Location loc, Value x, Type from, Type to) {
  Type target = computeType(to);
  bool fromUnsigned = from.isUnsignedInteger() || from.isInteger(1);
  // Narrow types round and wrap on their way through memory; a cast inside a fused region does so here.
  bool isNarrow = to.isF16() || to.isBF16() || isNarrowFloat(to) || isNarrowInteger(to);
  auto narrowed = [&](Value converted) {
    return isNarrow ? fromStorage(b, loc, toStorage(b, loc, converted, to), to) : converted;
  };
  if (to.isInteger(1)) {
    if (from.isInteger(1))
      return x;
    if (isa<FloatType>(x.getType()))
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x, scalarConstant(b, loc, from, 0));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, scalarConstant(b, loc, from, 0));
  }
  if (isa<FloatType>(x.getType()) && isa<FloatType>(target)) {
    if (x.getType() == target)
      return narrowed(x);
    if (x.getType().getIntOrFloatBitWidth() < target.getIntOrFloatBitWidth())
      return narrowed(arith::ExtFOp::create(b, loc, target, x));
    return narrowed(isNarrow && x.getType().isF64() ? roundToOdd(b, loc, x)
                                                    : arith::TruncFOp::create(b, loc, target, x).getResult());
  }
  if (isa<FloatType>(target))
    return narrowed(fromUnsigned ? arith::UIToFPOp::create(b, loc, target, x).getResult()
                                 : arith::SIToFPOp::create(b, loc, target, x).getResult());
  if (isa<FloatType>(x.getType())) {
    if (to.isUnsignedInteger(64))
      return arith::FPToUIOp::create(b, loc, target, x);
    // Narrow and unsigned targets take the low bits of a wide conversion, which is defined for all their values.
    Value wide = arith::FPToSIOp::create(b, loc, b.getI64Type(), x);
    return narrowed(integerCast(b, loc, wide, target, false));
  }
  return narrowed(integerCast(b, loc, x, target, fromUnsigned));
}

Value emitBitcast(OpBuilder &b, Location loc, Value x, Type from, Type to) {
  Value raw = toStorage(b, loc, x, from);
  if (raw.getType() != storageType(to))
    raw = arith::BitcastOp::create(b, loc, storageType(to), raw);
  return fromStorage(b, loc, raw, to);
}

Value emitGelu(OpBuilder &b, Location loc, ds::GeluKind kind, Value x) {
  auto constant = [&](double value) { return scalarConstant(b, loc, x.getType(), value); };
  auto mul = [&](Value a, Value c) -> Value { return arith::MulFOp::create(b, loc, a, c); };
  auto add = [&](Value a, Value c) -> Value { return arith::AddFOp::create(b, loc, a, c); };
  switch (kind) {
  case ds::GeluKind::erf: {
    Value erf = math::ErfOp::create(b, loc, mul(x, constant(0.70710678118654752440)));
    return mul(mul(x, constant(0.5)), add(erf, constant(1)));
  }
  case ds::GeluKind::tanh: {
    Value cubic = mul(mul(mul(x, x), x), constant(0.044715));
    Value tanh = math::TanhOp::create(b, loc, mul(add(x, cubic), constant(0.79788456080286535588)));
    return mul(mul(x, constant(0.5)), add(tanh, constant(1)));
  }
  case ds::GeluKind::quick:
    return mul(x, emitUnary(b, loc, ds::UnaryKind::sigmoid, mul(x, constant(1.702)), x.getType()));
  }
  llvm_unreachable("all kinds handled");
}

Value emitCombine(OpBuilder &b, Location loc, ds::ReduceKind kind, Value x, Value y, Type element) {
  bool isFloat = isa<FloatType>(x.getType()), isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  switch (kind) {
  case ds::ReduceKind::prod:
    return isFloat ? arith::MulFOp::create(b, loc, x, y).getResult() : arith::MulIOp::create(b, loc, x, y).getResult();
  case ds::ReduceKind::max:
    if (isFloat)
      return arith::MaximumFOp::create(b, loc, x, y);
    return isUnsigned ? arith::MaxUIOp::create(b, loc, x, y).getResult()
                      : arith::MaxSIOp::create(b, loc, x, y).getResult();
  case ds::ReduceKind::min:
    if (isFloat)
      return arith::MinimumFOp::create(b, loc, x, y);
    return isUnsigned ? arith::MinUIOp::create(b, loc, x, y).getResult()
                      : arith::MinSIOp::create(b, loc, x, y).getResult();
  default:
    return isFloat ? arith::AddFOp::create(b, loc, x, y).getResult() : arith::AddIOp::create(b, loc, x, y).getResult();
  }
}

Value neutralElement(OpBuilder &b, Location loc, ds::ReduceKind kind, Type element) {
  Type type = computeType(element);
  bool isMax = kind == ds::ReduceKind::max;
  if (!isMax && kind != ds::ReduceKind::min)
    return scalarConstant(b, loc, element, kind == ds::ReduceKind::prod ? 1.0 : 0.0);
  if (auto floating = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        b, loc, FloatAttr::get(type, APFloat::getInf(floating.getFloatSemantics(), /*Negative=*/isMax)));
  unsigned width = type.getIntOrFloatBitWidth();
  bool isUnsigned = element.isUnsignedInteger() || width == 1;
  APInt value = isMax ? (isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width))
                      : (isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width));
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(type, value));
}

} // namespace deepstride
