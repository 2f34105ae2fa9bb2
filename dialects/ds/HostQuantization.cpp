// Quotients are computed and rounded in double precision, so that a code depends on a weight and its scale alone.
#include "dialects/ds/HostQuantization.h"
#include "dialects/ds/NarrowFloats.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Parallel.h"

#include <array>
#include <atomic>
#include <cmath>
#include <limits>

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
        lowest(-highest - 1), isAsymmetric(scheme.isAsymmetric) {
    scales.resize(static_cast<size_t>(groups * columns));
    if (isAsymmetric)
      zeroPoints.resize(scales.size());
  }

  /// Whether all weights are finite.
  bool measure() {
    std::atomic<bool> isFinite = true;
    llvm::parallelFor(0, static_cast<size_t>(llvm::divideCeil(columns, width)), [&](size_t block) {
      for (int64_t group = 0; group < groups && isFinite; ++group)
        if (!measure(group, static_cast<int64_t>(block) * width))
          isFinite = false;
    });
    return isFinite;
  }

  /// A whole number of `scale` away from the zero point that is nearest to w.
  int code(double w, size_t place) const {
    double scale = scales[place], quotient = scale != 0 ? w / scale : 0;
    return clamp(std::nearbyint(quotient) + (isAsymmetric ? zeroPoints[place] : 0));
  }
  /// How far a weight is from what its code stands for.
  double errorOf(int64_t row, int64_t column, int code, size_t place) const {
    int difference = code - (isAsymmetric ? zeroPoints[place] : 0);
    return static_cast<double>(weights[row * columns + column]) - difference * static_cast<double>(scales[place]);
  }
  size_t placeOf(int64_t row, int64_t column) const {
    return static_cast<size_t>(row / rowsPerGroup * columns + column);
  }

  const int64_t depth, columns;
  const float *const weights;
  const int64_t rowsPerGroup, groups;
  std::vector<float> scales;
  std::vector<int8_t> zeroPoints;

private:
  int clamp(double value) const {
    return static_cast<int>(std::clamp(value, static_cast<double>(lowest), static_cast<double>(highest)));
  }
  static constexpr int64_t width = 64; // columns that are measured together

  bool measure(int64_t group, int64_t first) {
    std::array<float, width> low = {}, high = {};
    int64_t count = std::min(width, columns - first), start = group * rowsPerGroup;
    const float *begin = weights + start * columns + first,
                *end = weights + std::min(depth, start + rowsPerGroup) * columns + first;
    for (const float *row = begin; row != end; row += columns)
      for (int64_t column = 0; column < count; ++column) {
        if (!std::isfinite(row[column]))
          return false;
        low[column] = std::min(low[column], row[column]);
        high[column] = std::max(high[column], row[column]);
      }
    int64_t place = group * columns + first;
    if (!isAsymmetric) {
      chooseScales({begin, end}, count, low, high, &scales[place]);
      return true;
    }
    for (int64_t column = 0; column < count; ++column) {
      double least = low[column];
      float scale = static_cast<float>((high[column] - least) / (highest - lowest));
      scales[place + column] = scale;
      zeroPoints[place + column] = static_cast<int8_t>(scale > 0 ? clamp(std::nearbyint(lowest - least / scale)) : 0);
    }
    return true;
  }

  struct Rows {
    const float *begin, *end;
  };
  using Extremes = std::array<float, width>;

  /// Of the three scales that ds.quantize_weight names the first with the least sum of squared errors.
  void chooseScales(Rows rows, int64_t count, const Extremes &lows, const Extremes &highs, float *chosen) const {
    constexpr size_t candidates = 3;
    std::array<std::array<float, width>, candidates> scales = {};
    std::array<std::array<double, width>, candidates> errors = {};
    for (int64_t column = 0; column < count; ++column) {
      double low = lows[column], high = highs[column];
      // Codes reach further down than up: the sign of the scale turns the longer side there.
      auto reach = [&](double down, double up, double most) { return std::max(down / most, up / (0.5 + highest)); };
      double upright = reach(-low, high, 0.5 - lowest), turned = reach(high, -low, 0.5 - lowest);
      double largest = std::max(high, -low);
      scales[0][column] = static_cast<float>(upright <= turned ? upright : -turned);
      scales[1][column] = static_cast<float>(-low >= high ? reach(-low, high, -lowest) : -reach(high, -low, -lowest));
      scales[2][column] = static_cast<float>(largest / highest);
    }
    for (const float *row = rows.begin; row != rows.end; row += columns)
      for (size_t which = 0; which < candidates; ++which)
        for (int64_t column = 0; column < count; ++column) {
          double w = row[column], scale = scales[which][column];
          double steps = std::nearbyint(scale != 0 ? w / scale : 0);
          double error = w - std::min(std::max(steps, double(lowest)), double(highest)) * scale;
          errors[which][column] += error * error;
        }
    for (int64_t column = 0; column < count; ++column) {
      size_t best = 0;
      for (size_t which = 1; which < candidates; ++which)
        best = errors[which][column] < errors[best][column] ? which : best;
      chosen[column] = scales[best][column];
    }
  }

  const int highest, lowest;
  const bool isAsymmetric;
};
/// Rounds a few columns at a time: what is kept of each are its errors so far. Columns do not depend on each other.
class ColumnRounder {
public:
  static constexpr int64_t width = 8;

  ColumnRounder(const Quantizer &quantizer, const float *triangle)
      : quantizer(quantizer), triangle(triangle), errors(triangle ? quantizer.depth : 0) {}

  /// `use` is told each code, with its row, column, error, and what is left of L (w - (q - z) s) and L w in its row.
  template <typename Use> void run(int64_t first, Use use) {
    int64_t count = std::min(width, quantizer.columns - first);
    for (int64_t row = 0; row < quantizer.depth; ++row) {
      Lanes pushed = {}, whole = {};
      double diagonal = triangle ? triangle[row * quantizer.depth + row] : 1;
      if (triangle)
        sum(row, pushed, whole);
      for (int64_t lane = 0; lane < count; ++lane) {
        int64_t column = first + lane;
        size_t place = quantizer.placeOf(row, column);
        double w = quantizer.weights[row * quantizer.columns + column],
               furthest = 2.0 * std::fabs(quantizer.scales[place]);
        double moved = std::clamp(pushed[lane] / diagonal, -furthest, furthest);
        int code = quantizer.code(w + moved, place);
        double error = quantizer.errorOf(row, column, code, place);
        if (triangle)
          errors[row].error[lane] = error, errors[row].weight[lane] = w;
        use(row, column, code, error, pushed[lane] + diagonal * error, whole[lane] + diagonal * w);
      }
    }
  }

private:
  typedef double Lanes __attribute__((vector_size(width * sizeof(double))));
  struct Row {
    Lanes error = {}, weight = {};
  };

  void sum(int64_t row, Lanes &pushed, Lanes &whole) const {
    const float *factors = triangle + row * quantizer.depth;
    for (int64_t before = 0; before < row; ++before) {
      double factor = factors[before];
      pushed += factor * errors[before].error;
      whole += factor * errors[before].weight;
    }
  }

  const Quantizer &quantizer;
  const float *const triangle;
  std::vector<Row> errors;
};

/// Whether there is something to round, and to round it against.
bool prepare(Quantizer &quantizer, const HostTensor *triangle) {
  if (!quantizer.measure())
    return false;
  const float *numbers = triangle ? reinterpret_cast<const float *>(triangle->data) : nullptr;
  for (int64_t row = 0; numbers && row < quantizer.depth; ++row)
    for (int64_t column = 0; column <= row; ++column) {
      float number = numbers[row * quantizer.depth + column];
      if (!std::isfinite(number) || (column == row && !(number > 0)))
        return false;
    }
  return true;
}

/// Calls `use` as ColumnRounder does, for blocks of columns in parallel.
template <typename Use> void roundAll(const Quantizer &quantizer, const HostTensor *triangle, Use use) {
  const float *numbers = triangle ? reinterpret_cast<const float *>(triangle->data) : nullptr;
  int64_t blocks = llvm::divideCeil(quantizer.columns, ColumnRounder::width);
  llvm::parallelFor(0, static_cast<size_t>(blocks), [&](size_t block) {
    ColumnRounder(quantizer, numbers).run(static_cast<int64_t>(block) * ColumnRounder::width, use);
  });
}
} // namespace

std::optional<HostTensor> quantizeOnHost(const HostTensor &weight, ds::QuantizedPart part,
                                         const QuantizationScheme &scheme, const HostTensor *triangle) {
  Quantizer quantizer(weight, scheme);
  if (!prepare(quantizer, triangle))
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
  roundAll(quantizer, triangle, [&](int64_t row, int64_t column, int code, double, double, double) {
    to[row * quantizer.columns + column] = static_cast<char>(code);
  });
  return codes;
}

namespace {
/// Exponents of scales that may be in one sum, and of the powers that the sum may be divided by.
struct ScaleRange {
  int least = std::numeric_limits<int>::max(), greatest = std::numeric_limits<int>::min();
  int lowest = least, highest = greatest;
  bool isFinite = true;

  /// As the kernel has it: 2^60 times at most, one for 0 and for less than a normal number.
  void addPower(float scale) {
    constexpr int farthest = 60;
    int power = std::isnormal(scale) ? std::clamp(std::ilogb(scale), -farthest, farthest) : 0;
    lowest = std::min(lowest, power);
    highest = std::max(highest, power);
  }
  void addScale(float scale) {
    isFinite &= std::isfinite(scale);
    if (scale == 0 || !std::isfinite(scale))
      return;
    int exponent = std::ilogb(scale);
    least = std::min(least, exponent);
    greatest = std::max(greatest, exponent);
  }
  bool isTooWide(int64_t depth, int64_t bits) const {
    // An element of a row is a whole number of 23 bits, a code without its zero point one of `bits`, and a scale less
    // than twice its power; f32 ends at 2^128. A scale is divided exactly if what it becomes is a normal number, or
    // greater than it was.
    int64_t most = 128 - 24 - bits - llvm::Log2_64_Ceil(static_cast<uint64_t>(std::max<int64_t>(depth, 1)));
    constexpr int fewest = -126;
    return !isFinite || (least <= greatest && (greatest - lowest >= most || (highest > 0 && least - highest < fewest)));
  }
};
} // namespace

bool areScalesApart(ArrayRef<float> scales, int64_t columns, int64_t depth, int64_t bits) {
  if (!mayScalesBeApart(scales, depth, bits))
    return false;
  for (int64_t column = 0; column < columns; ++column) {
    ScaleRange range;
    range.addPower(scales[column]);
    for (size_t place = column; place < scales.size(); place += columns)
      range.addScale(scales[place]);
    if (range.isTooWide(depth, bits))
      return true;
  }
  return false;
}

bool mayScalesBeApart(ArrayRef<float> scales, int64_t depth, int64_t bits) {
  ScaleRange range;
  for (float scale : scales) {
    range.addPower(scale);
    range.addScale(scale);
  }
  return range.isTooWide(depth, bits);
}

std::optional<QuantizationError> quantizationError(const HostTensor &weight, const QuantizationScheme &scheme,
                                                   const HostTensor *triangle) {
  Quantizer quantizer(weight, scheme);
  if (!prepare(quantizer, triangle))
    return std::nullopt;
  struct Sums {
    double largest = 0, error = 0, weight = 0, moved = 0, result = 0;
    bool isBeyond = false;
  };
  std::vector<Sums> columns(static_cast<size_t>(quantizer.columns)); // each its own: any order gives the same bits
  roundAll(quantizer, triangle, [&](int64_t row, int64_t column, int, double error, double moved, double result) {
    Sums &sums = columns[column];
    double w = quantizer.weights[row * quantizer.columns + column];
    sums.isBeyond |= std::fabs(w - error) > std::numeric_limits<float>::max(); // what the code stands for
    sums.largest = std::max(sums.largest, std::fabs(error));
    sums.error += error * error;
    sums.weight += w * w;
    sums.moved += moved * moved;
    sums.result += result * result;
  });
  Sums all;
  for (const Sums &sums : columns) {
    if (sums.isBeyond)
      return std::nullopt;
    all.largest = std::max(all.largest, sums.largest);
    all.error += sums.error;
    all.weight += sums.weight;
    all.moved += sums.moved;
    all.result += sums.result;
  }
  QuantizationError error;
  error.areScalesApart =
      quantizer.groups > 1 && areScalesApart(quantizer.scales, quantizer.columns, quantizer.depth, scheme.bits);
  error.largest = all.largest;
  error.relative = all.weight > 0 ? std::sqrt(all.error / all.weight) : 0;
  error.inResults = triangle && all.result > 0 ? std::sqrt(all.moved / all.result) : 0;
  return error;
}

std::optional<QuantizationError> roundingError(const HostTensor &weight, FloatType narrow) {
  bool isHalf = narrow.isF16();
  double most = std::ldexp(1.0, isHalf ? -11 : -8); // of a normal number
  auto columns = static_cast<size_t>(weight.shape[1]);
  std::vector<std::pair<double, double>> sums(columns); // of squares: what is lost, and all
  ArrayRef elements(reinterpret_cast<const float *>(weight.data), static_cast<size_t>(weight.count()));
  QuantizationError error;
  for (auto [i, w] : llvm::enumerate(elements)) {
    double rest = w - static_cast<double>(isHalf ? floatOfHalf(halfOf(w)) : floatOfBfloat(bfloatOf(w)));
    if (!std::isfinite(rest))
      return std::nullopt;
    error.largest = std::max(error.largest, std::fabs(rest));
    sums[i % columns].first += rest * rest;
    sums[i % columns].second += static_cast<double>(w) * w;
  }
  double lost = 0, all = 0;
  for (auto [ofColumn, whole] : sums) {
    if (ofColumn > most * most * whole)
      return std::nullopt;
    lost += ofColumn;
    all += whole;
  }
  error.relative = all > 0 ? std::sqrt(lost / all) : 0;
  return error;
}

std::string describe(const QuantizationError &error) {
  std::string text = llvm::formatv("relative error {0:e2}, largest {1:e2}", error.relative, error.largest);
  return error.inResults > 0 ? llvm::formatv("{0}, of results {1:e2}", text, error.inResults).str() : text;
}

} // namespace deepstride
