// Floats of 16 bits on the host, element by element as APFloat converts them: to nearest, ties to even, overflow to
// infinity, NaN quiet with what fits of its payload. Only those of bfloat16 stay as they are when they become wide, as
// in kernels.
#ifndef DEEPSTRIDE_DIALECTS_DS_NARROWFLOATS_H
#define DEEPSTRIDE_DIALECTS_DS_NARROWFLOATS_H

#include "llvm/ADT/bit.h"
#include <cstdint>

namespace deepstride {

/// The bits of IEEE 754's binary16 (1, 5 and 10 bits) nearest to a float.
inline uint16_t halfOf(float value) {
  constexpr uint32_t infinity = 0x7f800000, leastNormal = 0x38800000, tooLarge = 0x47800000; // 2^-14, 2^16
  constexpr int lost = 13;
  auto bits = llvm::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size > infinity)
    return static_cast<uint16_t>(sign | 0x7e00 | (size >> lost & 0x3ff));
  if (size >= tooLarge)
    return static_cast<uint16_t>(sign | 0x7c00);
  if (size < leastNormal) { // multiples of 2^-24, as the sum with a half has
    float sum = llvm::bit_cast<float>(size) + 0.5f;
    return static_cast<uint16_t>(sign | (llvm::bit_cast<uint32_t>(sum) - llvm::bit_cast<uint32_t>(0.5f)));
  }
  uint32_t nearest = size + ((1u << (lost - 1)) - 1) + (size >> lost & 1);
  return static_cast<uint16_t>(sign | (nearest - (leastNormal - (1u << 23))) >> lost);
}

inline float floatOfHalf(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, size = bits & 0x7fff;
  if (size < 0x400) // multiples of 2^-24
    return llvm::bit_cast<float>(sign | llvm::bit_cast<uint32_t>(static_cast<float>(size) * 0x1p-24f));
  uint32_t wide = (size << 13) + (size >= 0x7c00 ? 0x70000000u : 0x38000000u);
  return llvm::bit_cast<float>(sign | wide | (size > 0x7c00 ? 0x400000u : 0u));
}

/// The bits of bfloat16, the upper half of a float, nearest to one.
inline uint16_t bfloatOf(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float floatOfBfloat(uint16_t bits) { return llvm::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

} // namespace deepstride

#endif
