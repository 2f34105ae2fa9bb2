// Evaluates on host tensors what looks at rows of elements as a whole: normalizations, sorts, greedy choices, and the
// replacement of a box. They stand in front of an operand that steers a shape.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostElements.h"

#include <numeric>

using namespace mlir;

namespace deepstride {

static std::optional<HostTensor> softmax(ds::SoftmaxOp op, const HostTensor &input) {
  HostTensor result = HostTensor::allocate(input.element, input.shape);
  Type element = input.element;
  size_t axis = op.getAxis();
  int64_t length = input.shape[axis], step = countBetween(input.shape, axis + 1, input.shape.size());
  for (int64_t row = 0, rows = length ? input.count() / length : 0; row < rows; ++row) {
    int64_t first = row / step * step * length + row % step;
    double largest = numberAt(input, first).real, total = 0;
    for (int64_t i = 1; i < length; ++i)
      largest = std::max(largest, numberAt(input, first + i * step).real);
    auto shifted = [&](int64_t i) { return rounded(numberAt(input, first + i * step).real - largest, element); };
    for (int64_t i = 0; i < length; ++i)
      total = rounded(total + rounded(std::exp(shifted(i)), element), element);
    for (int64_t i = 0; i < length; ++i) {
      double value =
          op.getLog() ? shifted(i) - rounded(std::log(total), element) : rounded(std::exp(shifted(i)), element) / total;
      setNumber(result, first + i * step, {value, 0});
    }
  }
  return result;
}

/// Layer and root-mean-square normalization: the axes from `axis` on are one row.
static std::optional<HostTensor> normalize(ArrayRef<HostTensor> operands, size_t axis, double epsilon, bool isCentred) {
  const HostTensor &input = operands[0];
  HostTensor result = HostTensor::allocate(input.element, input.shape);
  Type element = input.element;
  int64_t length = countBetween(input.shape, axis, input.shape.size());
  auto parameter = [&](const HostTensor &tensor, int64_t flat) {
    return numberAt(tensor, broadcastOffset(flat, input.shape, tensor.shape)).real;
  };
  for (int64_t first = 0, n = input.count(); first < n; first += length) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < length && isCentred; ++i)
      mean = rounded(mean + numberAt(input, first + i).real, element);
    mean = rounded(mean / static_cast<double>(length), element);
    auto centred = [&](int64_t i) { return rounded(numberAt(input, first + i).real - mean, element); };
    for (int64_t i = 0; i < length; ++i)
      squares = rounded(squares + rounded(centred(i) * centred(i), element), element);
    double variance = rounded(squares / static_cast<double>(length), element);
    double deviation = rounded(std::sqrt(rounded(variance + epsilon, element)), element);
    for (int64_t i = first; i < first + length; ++i) {
      double value = rounded(centred(i - first) / deviation, element) * parameter(operands[1], i);
      if (operands.size() > 2)
        value = rounded(value, element) + parameter(operands[2], i);
      setNumber(result, i, {value, 0});
    }
  }
  return result;
}

/// The first elements of every row in the order of `top_k`: values, then places.
static SmallVector<HostTensor> topK(ds::TopKOp op, const HostTensor &input) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(op.getValues().getType()).getShape());
  HostTensor values = HostTensor::allocate(input.element, shape),
             places = HostTensor::allocate(IntegerType::get(op.getContext(), 64), shape);
  size_t axis = op.getAxis();
  int64_t length = input.shape[axis], step = countBetween(input.shape, axis + 1, input.shape.size());
  std::vector<int64_t> order(static_cast<size_t>(length));
  for (int64_t row = 0, rows = length ? input.count() / length : 0; row < rows; ++row) {
    int64_t first = row / step * step * length + row % step, to = row / step * step * shape[axis] + row % step;
    std::iota(order.begin(), order.end(), 0);
    auto precedes = [&](const HostNumber &x, const HostNumber &y) {
      return op.getLargest() ? isGreater(x, y, input.element) : isLess(x, y, input.element);
    };
    llvm::sort(order, [&](int64_t a, int64_t b) { // lesser places first among equal elements
      HostNumber x = numberAt(input, first + a * step), y = numberAt(input, first + b * step);
      return precedes(x, y) || (!precedes(y, x) && a < b);
    });
    for (int64_t i = 0; i < shape[axis]; ++i) {
      copyElements(input, first + order[static_cast<size_t>(i)] * step, values, to + i * step);
      setNumber(places, to + i * step, {0.0, order[static_cast<size_t>(i)]});
    }
  }
  return {values, places};
}

static HostTensor argsort(ds::ArgsortOp op, const HostTensor &input) {
  int64_t count = input.shape[0], width = countBetween(input.shape, 1, input.shape.size());
  HostTensor result = HostTensor::allocate(IntegerType::get(op.getContext(), 64), {count});
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  // NaN comes after every number.
  auto isBefore = [&](const HostNumber &x, const HostNumber &y) {
    return isa<FloatType>(input.element) ? x.real < y.real || (!std::isnan(x.real) && std::isnan(y.real))
                                         : isLess(x, y, input.element);
  };
  llvm::sort(order, [&](int64_t a, int64_t b) {
    for (int64_t i = 0; i < width; ++i) {
      HostNumber x = numberAt(input, a * width + i), y = numberAt(input, b * width + i);
      if (isBefore(x, y) || isBefore(y, x))
        return isBefore(x, y);
    }
    return a < b; // equal slices keep their order
  });
  for (int64_t i = 0; i < count; ++i)
    setNumber(result, i, {0.0, order[static_cast<size_t>(i)]});
  return result;
}

/// As ds.suppress says, in arithmetic of `Real`.
template <typename Real> static HostTensor suppress(ds::SuppressOp op, ArrayRef<HostTensor> operands) {
  const HostTensor &scores = operands[0];
  int64_t length = scores.shape[2], classes = scores.shape[1];
  HostTensor result = HostTensor::allocate(IntegerType::get(op.getContext(), 64), scores.shape);
  auto real = [&](unsigned operand, int64_t place) {
    return static_cast<Real>(numberAt(operands[operand], place).real);
  };
  // Whatever is compared with NaN, is not more: the order of operands of minima and maxima does not matter here.
  auto least = [](Real x, Real y) { return std::isnan(x) || x < y ? x : y; };
  auto most = [](Real x, Real y) { return std::isnan(x) || x > y ? x : y; };
  Real part = real(4, 0);
  for (int64_t line = 0; line < scores.shape[0] * classes; ++line) {
    int64_t ends = line / classes * 2 * length;
    auto overlap = [&](int64_t i, int64_t j) {
      Real shared = 1, areas[2] = {1, 1};
      for (int64_t axis = 0; axis < 2; ++axis) {
        int64_t a = ends + axis * length + i, b = ends + axis * length + j;
        Real common = most(least(real(2, a), real(2, b)) - most(real(1, a), real(1, b)), 0);
        shared *= common;
        areas[0] *= real(2, a) - real(1, a);
        areas[1] *= real(2, b) - real(1, b);
      }
      Real sum = areas[0] + areas[1], both = sum - shared, bound = both * part;
      return shared > bound && shared > 0;
    };
    std::vector<int64_t> order, kept;
    for (int64_t i = 0; i < length; ++i)
      if (operands.size() < 6 || real(0, line * length + i) > real(5, 0))
        order.push_back(i);
    llvm::sort(order, [&](int64_t a, int64_t b) {
      Real x = real(0, line * length + a), y = real(0, line * length + b);
      bool isBefore = x > y || (std::isnan(x) && !std::isnan(y)), isBehind = y > x || (std::isnan(y) && !std::isnan(x));
      return isBefore || (!isBehind && a < b);
    });
    for (int64_t i : order)
      if (static_cast<int64_t>(kept.size()) < numberAt(operands[3], 0).integer &&
          llvm::none_of(kept, [&](int64_t j) { return overlap(j, i); }))
        kept.push_back(i);
    kept.resize(static_cast<size_t>(length), -1);
    for (auto [place, box] : llvm::enumerate(kept))
      setNumber(result, line * length + static_cast<int64_t>(place), {0.0, box});
  }
  return result;
}

static std::optional<HostTensor> insert(ds::InsertOp op, const HostTensor &update, const HostTensor &into) {
  auto starts = sizesFromAttribute(op.getStarts());
  HostTensor result = HostTensor::allocate(into.element, into.shape);
  std::copy_n(into.data, into.bytes(), result.owned->data());
  for (int64_t i = 0, n = update.count(); i < n; ++i) {
    SmallVector<int64_t> position = positionOf(i, update.shape);
    for (size_t axis = 0; axis < position.size(); ++axis) {
      auto start = (*starts)[axis].constant();
      if (!start || *start < 0 || *start + position[axis] >= into.shape[axis])
        return std::nullopt;
      position[axis] += *start;
    }
    copyElements(update, i, result, flatOf(position, into.shape));
  }
  return result;
}

std::optional<HostTensor> evaluateRowsOnHost(Operation *op, ArrayRef<HostTensor> operands) {
  if (auto rows = dyn_cast<ds::SoftmaxOp>(op))
    return softmax(rows, operands[0]);
  if (auto rows = dyn_cast<ds::LayerNormOp>(op))
    return normalize(operands, rows.getAxis(), rows.getEpsilon().convertToDouble(), /*isCentred=*/true);
  if (auto rows = dyn_cast<ds::RmsNormOp>(op))
    return normalize(operands, rows.getAxis(), rows.getEpsilon().convertToDouble(), /*isCentred=*/false);
  if (auto sorted = dyn_cast<ds::ArgsortOp>(op))
    return argsort(sorted, operands[0]);
  if (auto choice = dyn_cast<ds::SuppressOp>(op)) {
    Type type = operands[0].element;
    if (!type.isF32() && !type.isF64())
      return std::nullopt;
    return type.isF32() ? suppress<float>(choice, operands) : suppress<double>(choice, operands);
  }
  if (auto replaced = dyn_cast<ds::InsertOp>(op))
    return insert(replaced, operands[0], operands[1]);
  return evaluateWindowsOnHost(op, operands);
}

std::optional<SmallVector<HostTensor>> evaluateResultsOnHost(Operation *op, ArrayRef<HostTensor> operands) {
  if (auto sorted = dyn_cast<ds::TopKOp>(op))
    return topK(sorted, operands[0]);
  auto result = op->getNumResults() == 1 ? evaluateOnHost(op, operands) : std::nullopt;
  return result ? std::optional(SmallVector<HostTensor>{*result}) : std::nullopt;
}

} // namespace deepstride
