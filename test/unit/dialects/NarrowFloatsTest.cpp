// Conversions between f32 and floats of 16 bits against APFloat's: all of the latter, and of the former those about
// every one of them.
#include "dialects/ds/NarrowFloats.h"

#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace deepstride;
using llvm::APFloat;

namespace {

uint32_t bitsOf(float value) { return llvm::bit_cast<uint32_t>(value); }

uint32_t converted(const llvm::fltSemantics &from, uint32_t bits, const llvm::fltSemantics &to) {
  APFloat number(from, llvm::APInt(APFloat::getSizeInBits(from), bits));
  bool losesInfo = false;
  number.convert(to, APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint32_t>(number.bitcastToAPInt().getZExtValue());
}

void narrowsAlike(uint32_t bits) {
  auto value = llvm::bit_cast<float>(bits);
  ASSERT_EQ(halfOf(value), converted(APFloat::IEEEsingle(), bits, APFloat::IEEEhalf())) << std::hex << bits;
  ASSERT_EQ(bfloatOf(value), converted(APFloat::IEEEsingle(), bits, APFloat::BFloat())) << std::hex << bits;
}

TEST(NarrowFloats, WidensAllOfThem) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    auto narrow = static_cast<uint16_t>(bits);
    ASSERT_EQ(bitsOf(floatOfHalf(narrow)), converted(APFloat::IEEEhalf(), bits, APFloat::IEEEsingle())) << bits;
    uint32_t quiet = std::isnan(floatOfBfloat(narrow)) ? 0x400000 : 0;
    ASSERT_EQ(bitsOf(floatOfBfloat(narrow)) | quiet, converted(APFloat::BFloat(), bits, APFloat::IEEEsingle())) << bits;
  }
}

TEST(NarrowFloats, NarrowsWhatLiesBetweenThem) {
  // Each of the 16 bits, the middle to the next one, and a step to either side of both: ties, overflow, denormals, NaN.
  for (uint32_t upper = 0; upper < 1u << 16; ++upper)
    for (uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      narrowsAlike(upper << 16 | lower);
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    uint32_t half = bitsOf(floatOfHalf(static_cast<uint16_t>(bits)));
    for (uint32_t lower : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu})
      narrowsAlike(half + lower);
  }
}

TEST(NarrowFloats, NarrowsAnyFloat) {
  std::mt19937 random(std::random_device{}());
  for (int i = 0; i < 1 << 20; ++i)
    narrowsAlike(random());
  std::uniform_int_distribution<uint32_t> tiny(bitsOf(0x1p-26f), bitsOf(0x1p-13f)); // denormals of half
  for (int i = 0; i < 1 << 18; ++i)
    narrowsAlike(tiny(random));
}

} // namespace
