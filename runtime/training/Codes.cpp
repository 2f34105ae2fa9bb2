// Scales are computed as the package computes them (passes/training/Quantizers.h): of largest and least elements and
// powers of 2, which have one result in any order. Those of few levels are what the image holds.
#include "runtime/training/Codes.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cmath>

namespace ds {
namespace {

struct Range {
  const float *begin, *end;
};

float greatestSize(Range range) {
  float greatest = 0;
  for (const float *x = range.begin; x != range.end; ++x)
    greatest = std::max(greatest, std::abs(*x));
  return greatest;
}

float scaleOf(Range parameter, Range image, const QuantizationSettings &settings, int64_t bits) {
  auto orOne = [](float scale) { return scale > 0 ? scale : 1; };
  if (settings.isSymmetric && !settings.isStochastic && bits <= 2)
    return orOne(greatestSize(image));
  if (settings.isSymmetric)
    return orOne(std::ldexp(greatestSize(parameter), static_cast<int>(1 - bits)));
  auto [least, most] = std::minmax_element(parameter.begin, parameter.end);
  float scale = std::ldexp(*most - *least, static_cast<int>(-bits));
  return scale > 0 ? scale : orOne(std::abs(*most));
}

std::string oneSided(int64_t group, int64_t bits) {
  return concat("the elements of group ", group, " lie on one side of 0, where no zero point of ", bits,
                " bits reaches");
}

} // namespace

Codes codesOf(const TensorView &parameter, const TensorView &image, const QuantizationSettings &settings, int64_t bits,
              std::string &refusal) {
  constexpr int64_t most = 8;
  Codes result;
  if (parameter.type != ElementType::F32 || image.type != ElementType::F32)
    refusal = concat("it is ", typeName(parameter.type), ", expected f32");
  else if (parameter.shape != image.shape)
    refusal = "what it is rounded to has another shape";
  else if (elementCount(parameter.shape) == 0 || elementCount(parameter.shape) % settings.groups != 0)
    refusal = concat("its ", elementCount(parameter.shape), " elements are no ", settings.groups, " groups");
  else if (bits < 1 || bits > most)
    refusal = concat("it has ", bits, " bits, expected 1 to ", most);
  if (!refusal.empty())
    return result;
  result.shape = parameter.shape;
  result.bits = bits > 4 ? 8 : 4;
  result.isSigned = settings.isSymmetric;
  int16_t greatest = static_cast<int16_t>((1 << result.bits) - 1); // of codes without sign
  int64_t size = elementCount(parameter.shape) / settings.groups;
  for (int64_t group = 0; group < settings.groups; ++group) {
    const float *from = static_cast<const float *>(parameter.data) + group * size;
    const float *to = static_cast<const float *>(image.data) + group * size;
    float scale = scaleOf({from, from + size}, {to, to + size}, settings, bits);
    size_t first = result.codes.size();
    for (int64_t i = 0; i < size; ++i) {
      float multiple = std::nearbyint(to[i] / scale);
      if (!result.isSigned && std::abs(multiple) > 2.0F * static_cast<float>(greatest)) {
        refusal = oneSided(group, result.bits);
        return result;
      }
      if (!(std::abs(multiple) <= static_cast<float>(greatest) * 2 && multiple * scale == to[i])) {
        refusal = concat("element ", group * size + i, ", ", to[i], ", is no multiple of the scale ", scale);
        return result;
      }
      result.codes.push_back(static_cast<int16_t>(multiple));
    }
    result.scales.push_back(scale);
    if (result.isSigned)
      continue;
    auto [least, last] =
        std::minmax_element(result.codes.begin() + static_cast<std::ptrdiff_t>(first), result.codes.end());
    int16_t zero = static_cast<int16_t>(std::max(0, -*least));
    if (zero > greatest || *last + zero > greatest) {
      refusal = oneSided(group, result.bits);
      return result;
    }
    result.zeroPoints.push_back(zero);
    for (size_t i = first; i < result.codes.size(); ++i)
      result.codes[i] = static_cast<int16_t>(result.codes[i] + zero);
  }
  return result;
}

} // namespace ds
