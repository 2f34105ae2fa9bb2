#include "tools/ds-run/TensorCompare.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

namespace ds {
namespace {

constexpr uint64_t noUlp = std::numeric_limits<uint64_t>::max();
constexpr double infinity = std::numeric_limits<double>::infinity();

template <typename Bits, typename Value> Bits bitsOf(Value value) {
  Bits bits;
  static_assert(sizeof(bits) == sizeof(value));
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Sign and magnitude to a number line with one zero.
template <typename Bits> uint64_t distance(Bits a, Bits b) {
  constexpr Bits signBit = Bits(1) << (sizeof(Bits) * 8 - 1);
  Bits magnitudeA = a & static_cast<Bits>(~signBit), magnitudeB = b & static_cast<Bits>(~signBit);
  if ((a ^ b) & signBit)
    return uint64_t(magnitudeA) + uint64_t(magnitudeB);
  return magnitudeA > magnitudeB ? magnitudeA - magnitudeB : magnitudeB - magnitudeA;
}

struct Element {
  double absolute, relative;
  uint64_t ulp;
};

Element compareFloats(ElementType type, double found, double expected) {
  if (std::isnan(found) && std::isnan(expected))
    return {0, 0, 0};
  if (std::isnan(found) || std::isnan(expected))
    return {infinity, infinity, noUlp};
  if (found == expected) // infinities included
    return {0, 0, 0};
  if (std::isinf(found) || std::isinf(expected))
    return {infinity, infinity, noUlp};
  double absolute = std::fabs(found - expected);
  return {absolute, expected == 0 ? infinity : absolute / std::fabs(expected), ulpDistance(type, found, expected)};
}

Element compareIntegers(uint64_t found, uint64_t expected, bool isSignedType) {
  bool isLess = isSignedType ? static_cast<int64_t>(found) < static_cast<int64_t>(expected) : found < expected;
  uint64_t steps = isLess ? expected - found : found - expected;
  double magnitude =
      isSignedType ? std::fabs(static_cast<double>(static_cast<int64_t>(expected))) : static_cast<double>(expected);
  double absolute = static_cast<double>(steps);
  return {absolute, steps == 0 ? 0 : magnitude == 0 ? infinity : absolute / magnitude, steps};
}

uint64_t integerAt(const TensorView &tensor, size_t i) {
  if (tensor.type != ElementType::U64)
    return static_cast<uint64_t>(loadInteger(tensor.type, tensor.data, i));
  uint64_t value;
  std::memcpy(&value, static_cast<const char *>(tensor.data) + i * sizeof(value), sizeof(value));
  return value;
}

// The step between 1 and the next number, where it is coarser than the usual tolerance; rounding once is at most half.
double coarseStep(ElementType type) {
  switch (type) {
  case ElementType::F16: return 0x1p-10;
  case ElementType::BF16: return 0x1p-7;
  case ElementType::F8E4M3FN:
  case ElementType::F8E4M3FNUZ: return 0x1p-3;
  case ElementType::F8E5M2:
  case ElementType::F8E5M2FNUZ: return 0x1p-2;
  case ElementType::F4E2M1: return 0x1p-1;
  default: return 0;
  }
}

// The median magnitude of up to a million elements, spread over the tensor, that are neither 0 nor infinite; 0 without.
double typicalMagnitude(const TensorView &tensor) {
  constexpr int64_t most = int64_t(1) << 20;
  int64_t count = elementCount(tensor.shape), step = count / most + 1;
  std::vector<double> found;
  for (int64_t i = 0; i * step < count; ++i) {
    int64_t at = std::min(i * step + i * 7919 % step, count - 1); // not always the same column
    double magnitude = std::fabs(loadDouble(tensor.type, tensor.data, static_cast<size_t>(at)));
    if (magnitude > 0 && magnitude < infinity)
      found.push_back(magnitude);
  }
  if (found.empty())
    return 0;
  auto middle = found.begin() + static_cast<std::ptrdiff_t>(found.size() / 2);
  std::nth_element(found.begin(), middle, found.end());
  return *middle;
}

ElementType narrower(ElementType a, ElementType b) {
  auto precision = [](ElementType type) {
    switch (type) {
    case ElementType::F64: return 3;
    case ElementType::F32: return 2;
    case ElementType::F16: return 1;
    default: return 0;
    }
  };
  return precision(a) < precision(b) ? a : b;
}

// Sums that describe two tensors as vectors.
class Vectors {
public:
  void add(double found, double expected) {
    if (!std::isfinite(found) || !std::isfinite(expected)) {
      isDefined &= found == expected || (std::isnan(found) && std::isnan(expected));
      return;
    }
    product += found * expected;
    foundEnergy += found * found;
    expectedEnergy += expected * expected;
    errorEnergy += (found - expected) * (found - expected);
  }

  // No number where an element that is none on one side is another on the other side.
  double cosine() const {
    if (!isDefined)
      return std::numeric_limits<double>::quiet_NaN();
    // Of equal vectors it is 1, which rounding would miss.
    return errorEnergy == 0 && expectedEnergy > 0 ? 1 : product / std::sqrt(foundEnergy) / std::sqrt(expectedEnergy);
  }
  double signalToNoise() const {
    return isDefined ? 10 * std::log10(expectedEnergy / errorEnergy) : std::numeric_limits<double>::quiet_NaN();
  }

private:
  double product = 0, foundEnergy = 0, expectedEnergy = 0, errorEnergy = 0;
  bool isDefined = true;
};

std::string decimals(double value, const char *format) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

} // namespace

uint64_t ulpDistance(ElementType type, double a, double b) {
  switch (type) {
  case ElementType::F64: return distance(bitsOf<uint64_t>(a), bitsOf<uint64_t>(b));
  case ElementType::F32:
    return distance(bitsOf<uint32_t>(static_cast<float>(a)), bitsOf<uint32_t>(static_cast<float>(b)));
  case ElementType::F16: return distance(narrowF16(static_cast<float>(a)), narrowF16(static_cast<float>(b)));
  case ElementType::BF16: return distance(narrowBF16(static_cast<float>(a)), narrowBF16(static_cast<float>(b)));
  default: return static_cast<uint64_t>(std::fabs(a - b));
  }
}

Difference compareTensors(const TensorView &found, const TensorView &expected, const Tolerance &tolerance,
                          bool mayDifferInType) {
  Difference result;
  bool areFloats = isFloat(found.type) && isFloat(expected.type);
  if (found.type != expected.type && !(mayDifferInType && areFloats)) {
    result.isComparable = false;
    result.reason = concat("type differs, found ", typeName(found.type), ", expected ", typeName(expected.type));
    return result;
  }
  if (found.shape != expected.shape) {
    result.isComparable = false;
    result.reason = concat("shape differs, found ", listText(found.shape), ", expected ", listText(expected.shape));
    return result;
  }
  ElementType ulpType = narrower(found.type, expected.type);
  int64_t count = elementCount(found.shape);
  if (areFloats)
    result.relative = tolerance.relative.value_or(std::max(1e-3, coarseStep(ulpType)));
  if (tolerance.absolute && found.type != ElementType::I1) {
    result.absolute = *tolerance.absolute;
  } else if (areFloats) {
    double typical = typicalMagnitude(expected);
    result.absolute = typical > 0 ? result.relative * typical : 1e-7; // of zeros: as in the ONNX test suite
  }
  Vectors vectors;
  for (int64_t i = 0; i < count; ++i) {
    size_t at = static_cast<size_t>(i);
    double foundValue = loadDouble(found.type, found.data, at),
           expectedValue = loadDouble(expected.type, expected.data, at);
    vectors.add(foundValue, expectedValue);
    Element element = areFloats ? compareFloats(ulpType, foundValue, expectedValue)
                                : compareIntegers(integerAt(found, at), integerAt(expected, at), isSigned(found.type));
    result.maxAbsolute = std::max(result.maxAbsolute, element.absolute);
    result.maxRelative = std::max(result.maxRelative, element.relative);
    result.maxUlp = std::max(result.maxUlp, element.ulp);
    bool isOutside = element.absolute == infinity
                         ? true
                         : element.absolute > result.absolute + result.relative * std::fabs(expectedValue);
    if (isOutside && element.absolute != 0 && result.outside++ == 0)
      result.firstOutside = i;
  }
  if (areFloats) {
    result.cosine = vectors.cosine();
    result.signalToNoise = vectors.signalToNoise();
  }
  return result;
}

std::string differenceText(const Difference &difference, const TensorView &found, const TensorView &expected) {
  if (!difference.isComparable)
    return difference.reason + ": differs";
  std::string ulp = difference.maxUlp == noUlp ? "inf" : std::to_string(difference.maxUlp);
  std::string text =
      concat("max abs ", difference.maxAbsolute, ", max rel ", difference.maxRelative, ", max ulp ", ulp);
  if (difference.cosine && !std::isnan(*difference.cosine))
    text += ", cosine " + decimals(*difference.cosine, "%.9g");
  if (difference.signalToNoise && !std::isnan(*difference.signalToNoise))
    text += ", snr " + decimals(*difference.signalToNoise, "%.1f") + " dB";
  if (difference.isWithin())
    return text + ": ok";
  size_t first = static_cast<size_t>(difference.firstOutside);
  return concat(text, ": ", difference.outside, " of ", elementCount(found.shape), " outside, first at ", first,
                ": found ", loadDouble(found.type, found.data, first), ", expected ",
                loadDouble(expected.type, expected.data, first), " (tolerance ", difference.absolute, " + ",
                difference.relative, " of it)");
}

} // namespace ds
