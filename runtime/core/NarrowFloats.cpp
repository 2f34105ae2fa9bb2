#include "runtime/core/NarrowFloats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ds {
namespace {

struct Format {
  int mantissa, bias;
  uint8_t greatest;     // the code of the greatest finite value
  uint8_t nan;          // F4E2M1 has none: -0
  uint8_t signBit;      // 0: no negative numbers
  bool hasNegativeZero; // else its code is the NaN
};

Format formatOf(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN: return {3, 7, 0x7e, 0x7f, 0x80, true};
  case ElementType::F8E4M3FNUZ: return {3, 8, 0x7f, 0x80, 0x80, false};
  case ElementType::F8E5M2: return {2, 15, 0x7b, 0x7e, 0x80, true};
  case ElementType::F8E5M2FNUZ: return {2, 16, 0x7f, 0x80, 0x80, false};
  case ElementType::F8E8M0: return {0, 127, 0xfe, 0xff, 0, true};
  default: return {1, 1, 0x7, 0x8, 0x8, true}; // F4E2M1
  }
}

} // namespace

bool isNarrowFloat(ElementType type) { return type >= ElementType::F8E4M3FN && type <= ElementType::F4E2M1; }

double widenNarrow(ElementType type, uint8_t bits) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  Format format = formatOf(type);
  if (type == ElementType::F8E8M0)
    return bits == format.nan ? nan : std::ldexp(1.0, bits - format.bias);
  if (!format.hasNegativeZero && bits == format.nan)
    return nan;
  int code = bits & (format.signBit - 1);
  double sign = bits & format.signBit ? -1 : 1;
  if (code > format.greatest) // E5M2 has infinities, as the greater formats have
    return type == ElementType::F8E5M2 && code == 0x7c ? sign * std::numeric_limits<double>::infinity() : nan;
  int exponent = code >> format.mantissa, fraction = code & ((1 << format.mantissa) - 1);
  if (exponent == 0)
    return sign * std::ldexp(fraction, 1 - format.bias - format.mantissa);
  return sign * std::ldexp(fraction + (1 << format.mantissa), exponent - format.bias - format.mantissa);
}

uint8_t narrowFloat(ElementType type, double value) {
  Format format = formatOf(type);
  if (std::isnan(value))
    return format.nan;
  double magnitude = std::fabs(value);
  bool isNegative = std::signbit(value) && format.signBit != 0;
  if (format.signBit == 0 && value <= 0)
    return 0;
  if (magnitude >= widenNarrow(type, format.greatest))
    return static_cast<uint8_t>(format.greatest | (isNegative ? format.signBit : 0));
  // A rounding that carries into the exponent gives the code of the next power of two.
  bool hasSubnormals = type != ElementType::F8E8M0;
  int least = hasSubnormals ? 1 - format.bias : -format.bias;
  int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), least) : least;
  int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent)));
  int code = units + ((exponent - least) << format.mantissa);
  if (!hasSubnormals) // only the exponent is stored; halfway to the next power of two is rounded up
    code = exponent - least + (magnitude >= std::ldexp(1.5, exponent) ? 1 : 0);
  if (code == 0 && !format.hasNegativeZero)
    return 0;
  return static_cast<uint8_t>(code | (isNegative ? format.signBit : 0));
}

} // namespace ds
