// Conversion of floats of eight and four bits in integer arithmetic, which vectorizes and needs no library.
#include "codegen/lower/NarrowTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

namespace {
struct Format {
  int mantissa, bias;
  int greatest; // code of the greatest finite magnitude
  int overflow; // code of what is greater
  int nan;
  int sign; // the sign's bit; 0 where all numbers are positive
  bool nanIsNegativeZero = false;
};

class Emitter {
public:
  Emitter(OpBuilder &b, Location loc) : b(b), loc(loc) {}
  Value number(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); }
  Value real(double value) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value))); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value left(Value x, int64_t by) { return arith::ShLIOp::create(b, loc, x, number(by)); }
  Value right(Value x, int64_t by) { return arith::ShRUIOp::create(b, loc, x, number(by)); }
  Value select(Value condition, Value yes, Value no) { return arith::SelectOp::create(b, loc, condition, yes, no); }
  Value compare(arith::CmpIPredicate predicate, Value x, int64_t y) {
    return arith::CmpIOp::create(b, loc, predicate, x, number(y));
  }
  Value bitsOf(Value x) { return arith::BitcastOp::create(b, loc, b.getI32Type(), x); }
  Value floatOf(Value bits) { return arith::BitcastOp::create(b, loc, b.getF32Type(), bits); }

  OpBuilder &b;
  Location loc;
};
} // namespace

static std::optional<Format> formatOf(Type element) {
  if (isa<Float8E4M3FNType>(element))
    return Format{3, 7, 0x7e, 0x7f, 0x7f, 0x80};
  if (isa<Float8E4M3FNUZType>(element))
    return Format{3, 8, 0x7f, 0x80, 0x80, 0x80, true};
  if (isa<Float8E5M2Type>(element))
    return Format{2, 15, 0x7b, 0x7c, 0x7e, 0x80};
  if (isa<Float8E5M2FNUZType>(element))
    return Format{2, 16, 0x7f, 0x80, 0x80, 0x80, true};
  if (isa<Float8E8M0FNUType>(element))
    return Format{0, 127, 0xfe, 0xff, 0xff, 0};
  if (isa<Float4E2M1FNType>(element))
    return Format{1, 1, 0x7, 0x7, 0x8, 0x8}; // no infinity: the greatest number; no NaN: ONNX's cases have -0
  return std::nullopt;
}

bool isNarrowFloat(Type element) { return formatOf(element).has_value(); }

bool isNarrowInteger(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  return integer && (integer.getWidth() == 2 || integer.getWidth() == 4);
}

Value decodeNarrowFloat(OpBuilder &b, Location loc, Value raw, Type element) {
  Format f = *formatOf(element);
  Emitter e(b, loc);
  Value bits = arith::ExtUIOp::create(b, loc, b.getI32Type(), raw);
  constexpr int64_t f32Mantissa = 23, f32Bias = 127, f32Nan = 0x7fc00000, f32Infinity = 0x7f800000;
  if (f.sign == 0) { // an exponent only; the least one is subnormal in f32
    Value power = e.select(e.compare(arith::CmpIPredicate::eq, bits, 0), e.number(0x400000), e.left(bits, f32Mantissa));
    return e.floatOf(e.select(e.compare(arith::CmpIPredicate::eq, bits, f.nan), e.number(f32Nan), power));
  }
  Value code = e.both(bits, e.number(f.sign - 1));
  Value normal = e.add(e.left(code, f32Mantissa - f.mantissa), e.number((f32Bias - f.bias) << f32Mantissa));
  Value units = arith::SIToFPOp::create(b, loc, b.getF32Type(), code);
  Value small = e.bitsOf(arith::MulFOp::create(b, loc, units, e.real(std::ldexp(1.0, 1 - f.bias - f.mantissa))));
  Value magnitude = e.select(e.compare(arith::CmpIPredicate::ult, code, int64_t(1) << f.mantissa), small, normal);
  if (f.overflow < f.sign && f.overflow > f.greatest) { // codes above the greatest number
    if (f.overflow != f.nan)
      magnitude = e.select(e.compare(arith::CmpIPredicate::eq, code, f.overflow), e.number(f32Infinity), magnitude);
    int firstNan = f.overflow == f.nan ? f.nan : f.overflow + 1;
    magnitude = e.select(e.compare(arith::CmpIPredicate::uge, code, firstNan), e.number(f32Nan), magnitude);
  }
  Value isNegative = e.compare(arith::CmpIPredicate::ne, e.both(bits, e.number(f.sign)), 0);
  Value signedBits = e.either(magnitude, e.select(isNegative, e.number(INT32_MIN), e.number(0)));
  if (f.nanIsNegativeZero) // there is no negative zero: its code is the NaN
    signedBits = e.select(e.compare(arith::CmpIPredicate::eq, bits, f.nan), e.number(f32Nan), signedBits);
  return e.floatOf(signedBits);
}

Value encodeNarrowFloat(OpBuilder &b, Location loc, Value value, Type element) {
  Format f = *formatOf(element);
  Emitter e(b, loc);
  constexpr int64_t f32Mantissa = 23, f32Bias = 127;
  Value bits = e.bitsOf(value), magnitude = e.both(bits, e.number(INT32_MAX));
  int64_t dropped = f32Mantissa - f.mantissa;
  Value odd = e.both(e.right(magnitude, dropped), e.number(1));
  Value rounded = e.right(e.add(e.add(magnitude, e.number((int64_t(1) << (dropped - 1)) - 1)), odd), dropped);
  Value code = e.add(rounded, e.number(-((f32Bias - f.bias) << f.mantissa)));
  if (f.sign != 0) { // below the least normal number: whole units, where rounding may carry into the first normal one
    double least = std::ldexp(1.0, 1 - f.bias);
    Value real = e.floatOf(magnitude);
    Value isSmall = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, real, e.real(least));
    Value units = arith::MulFOp::create(b, loc, e.select(isSmall, real, e.real(0)),
                                        e.real(std::ldexp(1.0, f.bias + f.mantissa - 1)));
    Value small = arith::FPToSIOp::create(b, loc, b.getI32Type(), math::RoundEvenOp::create(b, loc, units));
    code = e.select(isSmall, small, code);
  }
  code = e.select(e.compare(arith::CmpIPredicate::sgt, code, f.greatest), e.number(f.overflow), code);
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  code = e.select(isNan, e.number(f.nan), code);
  if (f.sign != 0) {
    Value isNegative = e.compare(arith::CmpIPredicate::slt, bits, 0);
    if (f.nanIsNegativeZero) // zero and NaN have no sign
      isNegative = e.both(isNegative, e.both(e.compare(arith::CmpIPredicate::ne, code, 0),
                                             e.compare(arith::CmpIPredicate::ne, code, f.nan)));
    code = e.either(code, e.select(isNegative, e.number(f.sign), e.number(0)));
  }
  return arith::TruncIOp::create(b, loc, b.getI8Type(), code);
}

Value wrapNarrowInteger(OpBuilder &b, Location loc, Value value, Type element) {
  auto integer = cast<IntegerType>(element);
  Value distance = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(8 - integer.getWidth()));
  Value high = arith::ShLIOp::create(b, loc, value, distance);
  return integer.isUnsigned() ? arith::ShRUIOp::create(b, loc, high, distance).getResult()
                              : arith::ShRSIOp::create(b, loc, high, distance).getResult();
}

} // namespace deepstride
