#include "runtime/comm/Wire.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace ds {
namespace {

bool isHalf(ElementType type) { return type == ElementType::F16 || type == ElementType::BF16; }

// To f32 so that a second rounding, to a half-width float, gives what one rounding would: an inexact result gets the
// odd one of its two neighbours.
float roundToOdd(double value) {
  float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value)
    return nearest;
  uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof(bits));
  if (bits & 1)
    return nearest;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return std::nextafterf(nearest, static_cast<double>(nearest) < value ? infinity : -infinity);
}

float toFloat(float value) { return value; }
float toFloat(double value) { return roundToOdd(value); }

template <typename From, typename To, typename Convert>
void convert(const void *source, void *destination, int64_t count, Convert action) {
  const From *in = static_cast<const From *>(source);
  To *out = static_cast<To *>(destination);
  for (int64_t i = 0; i < count; ++i)
    out[i] = action(in[i]);
}

template <typename From> void packHalf(ElementType wire, const void *source, void *message, int64_t count) {
  if (wire == ElementType::BF16)
    convert<From, uint16_t>(source, message, count, [](From value) { return narrowBF16(toFloat(value)); });
  else
    convert<From, uint16_t>(source, message, count, [](From value) { return narrowF16(toFloat(value)); });
}

template <typename To> void unpackHalf(ElementType wire, const void *message, void *destination, int64_t count) {
  if (wire == ElementType::BF16)
    convert<uint16_t, To>(message, destination, count, [](uint16_t bits) { return To(widenBF16(bits)); });
  else
    convert<uint16_t, To>(message, destination, count, [](uint16_t bits) { return To(widenF16(bits)); });
}

} // namespace

bool canTravelAs(ElementType type, ElementType wire) {
  if (type == wire)
    return true;
  if (type == ElementType::F64)
    return wire == ElementType::F32 || isHalf(wire);
  return type == ElementType::F32 && isHalf(wire);
}

void packElements(ElementType type, ElementType wire, const void *source, void *message, int64_t count) {
  if (count == 0)
    return;
  if (type == wire)
    std::memcpy(message, source, static_cast<size_t>(count) * typeSize(type));
  else if (wire == ElementType::F32)
    convert<double, float>(source, message, count, [](double value) { return static_cast<float>(value); });
  else if (type == ElementType::F64)
    packHalf<double>(wire, source, message, count);
  else
    packHalf<float>(wire, source, message, count);
}

void unpackElements(ElementType wire, ElementType type, const void *message, void *destination, int64_t count) {
  if (count == 0)
    return;
  if (type == wire)
    std::memcpy(destination, message, static_cast<size_t>(count) * typeSize(type));
  else if (wire == ElementType::F32)
    convert<float, double>(message, destination, count, [](float value) { return static_cast<double>(value); });
  else if (type == ElementType::F64)
    unpackHalf<double>(wire, message, destination, count);
  else
    unpackHalf<float>(wire, message, destination, count);
}

} // namespace ds
