// Quotients are computed and rounded in double precision, so that a code depends on a weight and its scale alone.
#include "dialects/ds/HostQuantization.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

namespace {
/// The codes, row by row: a row of scales holds for `rowsPerGroup` of them.
class Quantizer {
public:
  Quantizer(const HostTensor &weight, const QuantizationScheme &scheme)
      : depth(weight.shape[0]), columns(weight.shape[1]), weights(reinterpret_cast<const float *>(weight.data)),
        rowsPerGroup(scheme.group ? scheme.group : std::max<int64_t>(depth, 1)),
        groups(scheme.group ? (depth + scheme.group - 1) / scheme.group : 1), highest((1 << (scheme.bits - 1)) - 1),
        lowest(scheme.isAsymmetric ? -highest - 1 : -highest), isAsymmetric(scheme.isAsymmetric) {
    scales.resize(static_cast<size_t>(groups * columns));
    if (isAsymmetric)
      zeroPoints.resize(scales.size());
  }

  /// Whether all weights are finite.
  bool measure() {
    std::vector<float> low(static_cast<size_t>(columns)), high(low.size());
    for (int64_t group = 0; group < groups; ++group) {
      llvm::fill(low, 0.0F);
      llvm::fill(high, 0.0F);
      for (int64_t row = group * rowsPerGroup, end = std::min(depth, row + rowsPerGroup); row < end; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          float w = weights[row * columns + column];
          if (!std::isfinite(w))
            return false;
          low[column] = std::min(low[column], w);
          high[column] = std::max(high[column], w);
        }
      for (int64_t column = 0; column < columns; ++column)
        choose(group * columns + column, low[column], high[column]);
    }
    return true;
  }

  int code(int64_t row, int64_t column) const {
    size_t place = placeOf(row, column);
    double scale = scales[place], quotient = scale > 0 ? weights[row * columns + column] / scale : 0;
    return clamp(std::nearbyint(quotient) + (isAsymmetric ? zeroPoints[place] : 0));
  }
  double errorOf(int64_t row, int64_t column) const {
    size_t place = placeOf(row, column);
    int difference = code(row, column) - (isAsymmetric ? zeroPoints[place] : 0);
    return std::fabs(static_cast<double>(weights[row * columns + column]) - difference * double(scales[place]));
  }

  const int64_t depth, columns;
  const float *const weights;
  const int64_t rowsPerGroup, groups;
  std::vector<float> scales;
  std::vector<int8_t> zeroPoints;

private:
  size_t placeOf(int64_t row, int64_t column) const {
    return static_cast<size_t>(row / rowsPerGroup * columns + column);
  }
  int clamp(double value) const {
    return static_cast<int>(std::clamp(value, static_cast<double>(lowest), static_cast<double>(highest)));
  }
  void choose(int64_t place, double low, double high) {
    if (!isAsymmetric) {
      scales[place] = static_cast<float>(std::max(high, -low) / highest);
      return;
    }
    float scale = static_cast<float>((high - low) / (highest - lowest));
    scales[place] = scale;
    zeroPoints[place] = static_cast<int8_t>(scale > 0 ? clamp(std::nearbyint(lowest - low / scale)) : 0);
  }

  const int highest, lowest;
  const bool isAsymmetric;
};
} // namespace

std::optional<HostTensor> quantizeOnHost(const HostTensor &weight, ds::QuantizedPart part,
                                         const QuantizationScheme &scheme) {
  Quantizer quantizer(weight, scheme);
  if (!quantizer.measure())
    return std::nullopt;
  MLIRContext *context = weight.element.getContext();
  auto copied = [&](Type element, const void *data) {
    HostTensor result = HostTensor::allocate(element, {quantizer.groups, quantizer.columns});
    std::memcpy(result.owned->data(), data, result.owned->size());
    return result;
  };
  if (part == ds::QuantizedPart::scales)
    return copied(weight.element, quantizer.scales.data());
  if (part == ds::QuantizedPart::zero_points)
    return copied(IntegerType::get(context, 8), quantizer.zeroPoints.data());
  // Codes of 4 bits take a byte each until they are packed.
  HostTensor codes = HostTensor::allocate(IntegerType::get(context, static_cast<unsigned>(scheme.bits)), weight.shape);
  char *to = codes.owned->data();
  for (int64_t row = 0; row < quantizer.depth; ++row)
    for (int64_t column = 0; column < quantizer.columns; ++column)
      *to++ = static_cast<char>(quantizer.code(row, column));
  return codes;
}

std::optional<QuantizationError> quantizationError(const HostTensor &weight, const QuantizationScheme &scheme) {
  Quantizer quantizer(weight, scheme);
  if (!quantizer.measure())
    return std::nullopt;
  QuantizationError error;
  double squares = 0, whole = 0;
  for (int64_t row = 0; row < quantizer.depth; ++row)
    for (int64_t column = 0; column < quantizer.columns; ++column) {
      double w = quantizer.weights[row * quantizer.columns + column], off = quantizer.errorOf(row, column);
      error.largest = std::max(error.largest, off);
      squares += off * off;
      whole += w * w;
    }
  error.relative = whole > 0 ? std::sqrt(squares / whole) : 0;
  return error;
}

} // namespace deepstride
