// The steps of scalar functions on numbers, and elements in memory. Compiled without contraction: a product and a sum
// round twice unless they are asked for as one.
#include "dialects/ds/HostScalars.h"
#include "dialects/ds/NarrowFloats.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace deepstride {

std::optional<ElementInfo> ElementInfo::of(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned() || integer.getWidth() == 1;
    auto made = [&](ScalarType compute) { return ElementInfo{type, compute, false, isUnsigned, integer.getWidth()}; };
    switch (integer.getWidth()) {
    case 1: return made(ScalarType::i1);
    case 2:
    case 4:
    case 8: return made(ScalarType::i8);
    case 16: return made(ScalarType::i16);
    case 32: return made(ScalarType::i32);
    case 64: return made(ScalarType::i64);
    default: return std::nullopt;
    }
  }
  if (type.isF64())
    return ElementInfo{type, ScalarType::f64, true, false, 64};
  if (isa<Float32Type, Float16Type, BFloat16Type, Float8E4M3FNType, Float8E4M3FNUZType, Float8E5M2Type,
          Float8E5M2FNUZType, Float8E8M0FNUType, Float4E2M1FNType>(type))
    return ElementInfo{type, ScalarType::f32, true, false, type.getIntOrFloatBitWidth()};
  return std::nullopt;
}

static HostScalar single(float value) {
  HostScalar result;
  result.type = ScalarType::f32;
  result.integer = 0;
  result.f32 = value;
  return result;
}

static HostScalar twofold(double value) {
  HostScalar result;
  result.type = ScalarType::f64;
  result.f64 = value;
  return result;
}

/// The function on two floats of one type, or on one.
template <typename Function> static HostScalar onFloats(HostScalar x, HostScalar y, Function function) {
  return x.type == ScalarType::f32 ? single(function(x.f32, y.f32)) : twofold(function(x.f64, y.f64));
}

HostScalar HostScalars::integer(ScalarType type, int64_t value) {
  HostScalar result;
  result.type = type;
  unsigned shift = 64 - widthOf(type);
  result.integer =
      type == ScalarType::i1 ? value & 1 : static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
  return result;
}

HostScalar HostScalars::real(ScalarType type, double value) {
  return type == ScalarType::f32 ? single(static_cast<float>(value)) : twofold(value);
}

HostScalar HostScalars::add(Value x, Value y) {
  if (isFloat(x.type))
    return onFloats(x, y, [](auto a, auto b) { return a + b; });
  return integer(x.type, static_cast<int64_t>(bitsOf(x) + bitsOf(y)));
}

HostScalar HostScalars::sub(Value x, Value y) {
  if (isFloat(x.type))
    return onFloats(x, y, [](auto a, auto b) { return a - b; });
  return integer(x.type, static_cast<int64_t>(bitsOf(x) - bitsOf(y)));
}

HostScalar HostScalars::mul(Value x, Value y) {
  if (isFloat(x.type))
    return onFloats(x, y, [](auto a, auto b) { return a * b; });
  return integer(x.type, static_cast<int64_t>(bitsOf(x) * bitsOf(y)));
}

HostScalar HostScalars::fma(Value x, Value y, Value z) {
  return x.type == ScalarType::f32 ? single(std::fma(x.f32, y.f32, z.f32)) : twofold(std::fma(x.f64, y.f64, z.f64));
}

HostScalar HostScalars::negate(Value x) {
  return onFloats(x, x, [](auto a, auto) { return -a; });
}

HostScalar HostScalars::divide(Value x, Value y, bool isUnsigned) {
  if (isFloat(x.type))
    return onFloats(x, y, [](auto a, auto b) { return a / b; });
  return integer(x.type, isUnsigned ? static_cast<int64_t>(bitsOf(x) / bitsOf(y)) : x.integer / y.integer);
}

HostScalar HostScalars::remainder(Value x, Value y, bool isUnsigned) {
  if (isFloat(x.type))
    return onFloats(x, y, [](auto a, auto b) { return std::fmod(a, b); });
  return integer(x.type, isUnsigned ? static_cast<int64_t>(bitsOf(x) % bitsOf(y)) : x.integer % y.integer);
}

// IEEE 754-2019's maximum and minimum: NaN wins, and 0 is greater than -0.
HostScalar HostScalars::max(Value x, Value y, bool isUnsigned) {
  if (!isFloat(x.type))
    return compare(Compare::lt, x, y, isUnsigned).integer ? y : x;
  return onFloats(x, y, [](auto a, auto b) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? a : b;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  });
}

HostScalar HostScalars::min(Value x, Value y, bool isUnsigned) {
  if (!isFloat(x.type))
    return compare(Compare::lt, x, y, isUnsigned).integer ? x : y;
  return onFloats(x, y, [](auto a, auto b) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? a : b;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  });
}

HostScalar HostScalars::power(Value x, Value y) {
  return onFloats(x, y, [](auto a, auto b) { return std::pow(a, b); });
}

HostScalar HostScalars::copySign(Value magnitude, Value sign) {
  return onFloats(magnitude, sign, [](auto a, auto b) { return std::copysign(a, b); });
}

HostScalar HostScalars::function(ds::UnaryKind kind, Value x) {
  switch (kind) {
#define DS_INSTRUCTION(kind, mathOp, intrinsic, function)                                                              \
  case ds::UnaryKind::kind: return onFloats(x, x, [](auto a, auto) { return function(a); });
#define DS_POLYNOMIAL(kind, mathOp, function)                                                                          \
  case ds::UnaryKind::kind:                                                                                            \
    return x.type == ScalarType::f32 ? ScalarFunctions<HostScalars>(*this).kind(x) : twofold(function(x.f64));
#define DS_LIBM(kind, mathOp, function)                                                                                \
  case ds::UnaryKind::kind: return onFloats(x, x, [](auto a, auto) { return function(a); });
#include "dialects/ds/ScalarFunctions.def"
  default: llvm_unreachable("built from other functions");
  }
}

HostScalar HostScalars::erfcOfSize(Value x) {
  return x.type == ScalarType::f32 ? ScalarFunctions<HostScalars>(*this).erfcOfSize(x) : twofold(std::erfc(x.f64));
}

HostScalar HostScalars::gradualExpOfNonpositive(Value x) {
  return x.type == ScalarType::f32 ? ScalarFunctions<HostScalars>(*this).gradualExpOfNonpositive(x)
                                   : twofold(std::exp(x.f64));
}

HostScalar HostScalars::libmUnless(Value condition, Value common, ds::UnaryKind kind, Value x) {
  if (condition.integer)
    return common;
  return real(ScalarType::f32, kind == ds::UnaryKind::sin ? std::sin(x.f32) : std::cos(x.f32));
}

HostScalar HostScalars::compare(Compare how, Value x, Value y, bool isUnsigned) {
  auto decide = [how](auto a, auto b) {
    switch (how) {
    case Compare::eq: return a == b;
    case Compare::ne: return a != b;
    case Compare::lt: return a < b;
    case Compare::le: return a <= b;
    case Compare::gt: return a > b;
    case Compare::ge: return a >= b;
    case Compare::unordered: return a != a || b != b;
    }
    llvm_unreachable("all comparisons handled");
  };
  bool result = x.type == ScalarType::f32   ? decide(x.f32, y.f32)
                : x.type == ScalarType::f64 ? decide(x.f64, y.f64)
                : isUnsigned                ? decide(bitsOf(x), bitsOf(y))
                                            : decide(x.integer, y.integer);
  return integer(ScalarType::i1, result);
}

HostScalar HostScalars::integerTo(Value x, ScalarType type, bool isUnsigned) {
  return integer(type, isUnsigned ? static_cast<int64_t>(bitsOf(x)) : x.integer);
}

HostScalar HostScalars::integerToFloat(Value x, ScalarType type, bool isUnsigned) {
  if (type == ScalarType::f32)
    return single(isUnsigned ? static_cast<float>(bitsOf(x)) : static_cast<float>(x.integer));
  return twofold(isUnsigned ? static_cast<double>(bitsOf(x)) : static_cast<double>(x.integer));
}

HostScalar HostScalars::floatToInteger(Value x, ScalarType type) {
  return integer(type, static_cast<int64_t>(x.type == ScalarType::f32 ? x.f32 : x.f64));
}

HostScalar HostScalars::floatTo(Value x, ScalarType type) {
  if (x.type == type)
    return x;
  return type == ScalarType::f32 ? single(static_cast<float>(x.f64)) : twofold(x.f32);
}

HostScalar HostScalars::bitcast(Value x, ScalarType type) {
  char bytes[8] = {};
  std::memcpy(bytes, &x.integer, widthOf(x.type) / 8); // of the union, whichever member is in use
  HostScalar result;
  std::memcpy(&result.integer, bytes, sizeof bytes);
  if (!isFloat(type))
    return integer(type, result.integer);
  result.type = type;
  return result;
}

HostScalar HostScalars::rounded(Value x, const ElementInfo &to) {
  char bytes[8];
  writeScalar(to, bytes, x);
  return readScalar(to, bytes);
}

HostScalar HostScalars::reinterpret(Value x, const ElementInfo &from, const ElementInfo &to) {
  char bytes[8];
  writeScalar(from, bytes, x);
  return readScalar(to, bytes);
}

HostScalar readScalar(const ElementInfo &info, const char *at) {
  unsigned bytes = (info.width + 7) / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, at, bytes); // little-endian, as packages are
  HostScalar value;
  value.type = info.compute;
  if (!info.isFloat)
    return HostScalars().integer(info.compute, info.width == 1 ? bits != 0 : static_cast<int64_t>(bits));
  if (info.width >= 32 || info.type.isBF16()) {
    value.integer = static_cast<int64_t>(info.width == 16 ? bits << 16 : bits);
    return value;
  }
  if (info.type.isF16())
    return single(floatOfHalf(static_cast<uint16_t>(bits)));
  auto format = cast<FloatType>(info.type);
  APFloat number(format.getFloatSemantics(), APInt(info.width, bits, false, /*implicitTrunc=*/true));
  if (number.isNaN()) // the conversion below makes infinity of float8e8m0's
    return single(std::numeric_limits<float>::quiet_NaN());
  bool lost;
  number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
  return single(number.convertToFloat());
}

void writeScalar(const ElementInfo &info, char *at, const HostScalar &value) {
  unsigned bytes = (info.width + 7) / 8;
  auto bits = static_cast<uint64_t>(value.integer);
  if (info.isFloat && info.type.isBF16()) {
    bits = bfloatOf(value.f32);
  } else if (info.isFloat && info.type.isF16()) {
    bits = halfOf(value.f32);
  } else if (info.isFloat && info.width < 32) {
    APFloat number(value.f32);
    bool lost;
    number.convert(cast<FloatType>(info.type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    bits = number.bitcastToAPInt().getZExtValue();
  } else if (info.width > 1 && info.width < 8) { // extended to its byte
    unsigned shift = 64 - info.width;
    bits = info.isUnsigned ? (bits << shift) >> shift
                           : static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
  }
  std::memcpy(at, &bits, bytes);
}

} // namespace deepstride
