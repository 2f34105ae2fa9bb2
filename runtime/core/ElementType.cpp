#include "runtime/core/ElementType.h"

#include "runtime/core/NarrowFloats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace ds {
namespace {

struct TypeInfo {
  const char *name;
  uint8_t size;
  bool isFloat, isSigned;
};

constexpr std::array<TypeInfo, numElementTypes> types = {
    {{"f64", 8, true, true},    {"f32", 4, true, true},        {"f16", 2, true, true},
     {"bf16", 2, true, true},   {"i64", 8, false, true},       {"i32", 4, false, true},
     {"i16", 2, false, true},   {"i8", 1, false, true},        {"u64", 8, false, false},
     {"u32", 4, false, false},  {"u16", 2, false, false},      {"u8", 1, false, false},
     {"i1", 1, false, false},   {"f8e4m3fn", 1, true, true},   {"f8e4m3fnuz", 1, true, true},
     {"f8e5m2", 1, true, true}, {"f8e5m2fnuz", 1, true, true}, {"f8e8m0", 1, true, false},
     {"f4e2m1", 1, true, true}, {"i4", 1, false, true},        {"u4", 1, false, false},
     {"i2", 1, false, true},    {"u2", 1, false, false}}};

const TypeInfo &info(ElementType type) { return types[static_cast<size_t>(type)]; }

template <typename T> T load(const void *data, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T> void store(void *data, size_t index, T value) {
  std::memcpy(static_cast<char *>(data) + index * sizeof(T), &value, sizeof(T));
}

template <typename T> T clampTo(double value) {
  if (std::isnan(value))
    return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

float floatFromBits(uint32_t bits) { return load<float>(&bits, 0); }
uint32_t bitsOfFloat(float value) { return load<uint32_t>(&value, 0); }

} // namespace

const char *typeName(ElementType type) { return info(type).name; }
size_t typeSize(ElementType type) { return info(type).size; }

unsigned packedBits(ElementType type) {
  switch (type) {
  case ElementType::F4E2M1:
  case ElementType::I4:
  case ElementType::U4: return 4;
  case ElementType::I2:
  case ElementType::U2: return 2;
  default: return 8 * info(type).size;
  }
}

bool isFloat(ElementType type) { return info(type).isFloat; }
bool isSigned(ElementType type) { return info(type).isSigned; }

std::optional<ElementType> typeFromName(const std::string &name) {
  for (size_t i = 0; i < types.size(); ++i)
    if (name == types[i].name)
      return static_cast<ElementType>(i);
  return std::nullopt;
}

ElementType npyType(ElementType type) {
  switch (type) {
  case ElementType::I4:
  case ElementType::I2: return ElementType::I8;
  case ElementType::U4:
  case ElementType::U2: return ElementType::U8;
  default: return type == ElementType::BF16 || isNarrowFloat(type) ? ElementType::F32 : type;
  }
}

float widenBF16(uint16_t bits) { return floatFromBits(static_cast<uint32_t>(bits) << 16); }

uint16_t narrowBF16(float value) {
  uint32_t bits = bitsOfFloat(value);
  if (std::isnan(value))
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float widenF16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 0x3ff;
  if (exponent == 31)
    return floatFromBits(sign | 0x7f800000 | (mantissa << 13));
  if (exponent != 0)
    return floatFromBits(sign | ((exponent + 112) << 23) | (mantissa << 13));
  float magnitude = std::ldexp(static_cast<float>(mantissa), -24); // subnormal: exact in f32
  return sign ? -magnitude : magnitude;
}

uint16_t narrowF16(float value) {
  uint16_t sign = static_cast<uint16_t>((bitsOfFloat(value) >> 16) & 0x8000);
  if (std::isnan(value))
    return sign | 0x7e00 | ((bitsOfFloat(value) >> 13) & 0x1ff);
  float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) // the middle between the largest f16 and the next power of two
    return sign | 0x7c00;
  if (magnitude < 0x1p-14f) // subnormal: units of 2^-24; a carry gives the smallest normal, as it should
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 24)));
  uint32_t bits = bitsOfFloat(magnitude);
  bits += 0xfff + ((bits >> 13) & 1);
  return sign | static_cast<uint16_t>((bits >> 13) - (112u << 10));
}

double loadDouble(ElementType type, const void *data, size_t index) {
  switch (type) {
  case ElementType::F64: return load<double>(data, index);
  case ElementType::F32: return load<float>(data, index);
  case ElementType::F16: return widenF16(load<uint16_t>(data, index));
  case ElementType::BF16: return widenBF16(load<uint16_t>(data, index));
  case ElementType::U64: return static_cast<double>(load<uint64_t>(data, index));
  default:
    if (isNarrowFloat(type))
      return widenNarrow(type, load<uint8_t>(data, index));
    return static_cast<double>(loadInteger(type, data, index));
  }
}

int64_t loadInteger(ElementType type, const void *data, size_t index) {
  switch (type) {
  case ElementType::I64: return load<int64_t>(data, index);
  case ElementType::I32: return load<int32_t>(data, index);
  case ElementType::I16: return load<int16_t>(data, index);
  case ElementType::I4:
  case ElementType::I2:
  case ElementType::I8: return load<int8_t>(data, index);
  case ElementType::U64: {
    uint64_t value = load<uint64_t>(data, index);
    return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
  }
  case ElementType::U32: return load<uint32_t>(data, index);
  case ElementType::U16: return load<uint16_t>(data, index);
  case ElementType::U4:
  case ElementType::U2:
  case ElementType::U8: return load<uint8_t>(data, index);
  case ElementType::I1: return load<uint8_t>(data, index) != 0;
  default: return 0;
  }
}

void storeDouble(ElementType type, void *data, size_t index, double value) {
  switch (type) {
  case ElementType::F64: return store(data, index, value);
  case ElementType::F32: return store(data, index, static_cast<float>(value));
  case ElementType::F16: return store(data, index, narrowF16(static_cast<float>(value)));
  case ElementType::BF16: return store(data, index, narrowBF16(static_cast<float>(value)));
  case ElementType::I64: return store(data, index, clampTo<int64_t>(value));
  case ElementType::I32: return store(data, index, clampTo<int32_t>(value));
  case ElementType::I16: return store(data, index, clampTo<int16_t>(value));
  case ElementType::I8: return store(data, index, clampTo<int8_t>(value));
  case ElementType::U64: return store(data, index, clampTo<uint64_t>(value));
  case ElementType::U32: return store(data, index, clampTo<uint32_t>(value));
  case ElementType::U16: return store(data, index, clampTo<uint16_t>(value));
  case ElementType::U8: return store(data, index, clampTo<uint8_t>(value));
  case ElementType::I1: return store<uint8_t>(data, index, value != 0);
  case ElementType::I4: return store(data, index, clampTo<int8_t>(std::clamp(value, -8.0, 7.0)));
  case ElementType::U4: return store(data, index, clampTo<uint8_t>(std::min(value, 15.0)));
  case ElementType::I2: return store(data, index, clampTo<int8_t>(std::clamp(value, -2.0, 1.0)));
  case ElementType::U2: return store(data, index, clampTo<uint8_t>(std::min(value, 3.0)));
  default: return store(data, index, narrowFloat(type, value));
  }
}

} // namespace ds
