// Evaluates convolution and pooling on host tensors, tap by tap: what stands in front of an operand that steers a
// shape.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostElements.h"

#include <limits>

using namespace mlir;

namespace deepstride {

namespace {
/// The taps of a window that lie inside the operand.
struct Window {
  ArrayRef<int64_t> size, kernel, strides, pads, dilations; // spatial axes only

  /// Calls visit(tap, position) with the flat indices of kernel and operand, for the result at `at`.
  template <typename Visit> void forEach(ArrayRef<int64_t> at, Visit visit) const {
    for (int64_t tap = 0, taps = countBetween(kernel, 0, kernel.size()); tap < taps; ++tap) {
      SmallVector<int64_t> position = positionOf(tap, kernel);
      bool isInside = true;
      for (size_t i = 0; i < position.size(); ++i) {
        position[i] = at[i] * strides[i] - pads[i] + position[i] * dilations[i];
        isInside &= position[i] >= 0 && position[i] < size[i];
      }
      if (isInside)
        visit(tap, flatOf(position, size));
    }
  }
};
} // namespace

static HostTensor convolve(ds::ConvOp op, ArrayRef<HostTensor> operands, RankedTensorType type) {
  const HostTensor &input = operands[0], &weight = operands[1];
  ArrayRef<int64_t> shape = type.getShape(), size = ArrayRef(input.shape).drop_front(2),
                    kernel = ArrayRef(weight.shape).drop_front(2);
  Window window{size, kernel, op.getStrides(), op.getPads(), op.getDilations()};
  HostTensor result = HostTensor::allocate(type.getElementType(), shape);
  Type element = result.element;
  int64_t groups = op.getGroups(), filters = shape[1] / groups, channels = weight.shape[1];
  int64_t area = countBetween(size, 0, size.size()), taps = countBetween(kernel, 0, kernel.size());
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    SmallVector<int64_t> at = positionOf(i, shape);
    HostNumber total = operands.size() > 2 ? numberAt(operands[2], at[1]) : HostNumber();
    for (int64_t channel = 0; channel < channels; ++channel) {
      int64_t from = (at[0] * input.shape[1] + at[1] / filters * channels + channel) * area,
              with = (at[1] * channels + channel) * taps;
      window.forEach(ArrayRef(at).drop_front(2), [&](int64_t tap, int64_t position) {
        HostNumber term = productOf(numberAt(input, from + position), numberAt(weight, with + tap), element);
        total = sumOf(total, term, element);
      });
    }
    setNumber(result, i, total);
  }
  return result;
}

/// Elements that an average divides by where padding counts: taps before the end of the padding, since beyond that lies
/// what `ceil` added.
static int64_t paddedCount(ds::PoolOp op, ArrayRef<int64_t> at, ArrayRef<int64_t> size) {
  int64_t count = 1;
  for (size_t i = 0; i < size.size(); ++i) {
    int64_t room = size[i] + op.getPads()[size.size() + i] - (at[i] * op.getStrides()[i] - op.getPads()[i]);
    int64_t taps = (room + op.getDilations()[i] - 1) / op.getDilations()[i];
    count *= std::min(taps, op.getKernel()[i]);
  }
  return count;
}

/// Nothing for a window without elements, whose extremum is the type's.
static std::optional<HostTensor> pool(ds::PoolOp op, const HostTensor &input, RankedTensorType type) {
  ArrayRef<int64_t> shape = type.getShape(), size = ArrayRef(input.shape).drop_front(2);
  Window window{size, op.getKernel(), op.getStrides(), op.getPads(), op.getDilations()};
  HostTensor result = HostTensor::allocate(type.getElementType(), shape);
  Type element = input.element;
  bool isMax = op.getKind() == ds::PoolKind::max, isAverage = op.getKind() == ds::PoolKind::average;
  auto exponent = static_cast<double>(op.getExponent());
  if (!isMax && !isa<FloatType>(element))
    return std::nullopt;
  int64_t area = countBetween(size, 0, size.size());
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    SmallVector<int64_t> at = positionOf(i, shape);
    HostNumber total;
    int64_t count = 0;
    window.forEach(ArrayRef(at).drop_front(2), [&](int64_t, int64_t position) {
      HostNumber x = numberAt(input, (at[0] * shape[1] + at[1]) * area + position);
      if (isMax)
        total = count == 0 || isGreater(x, total, element) ? x : total;
      else
        total.real = rounded(
            total.real + (isAverage ? x.real : rounded(std::pow(std::fabs(x.real), exponent), element)), element);
      ++count;
    });
    if (count == 0 && isMax)
      return std::nullopt;
    if (isAverage)
      total.real /= static_cast<double>(op.getIncludePad() ? paddedCount(op, ArrayRef(at).drop_front(2), size) : count);
    else if (!isMax)
      total.real = std::pow(total.real, rounded(1 / exponent, element));
    setNumber(result, i, total);
  }
  return result;
}

std::optional<HostTensor> evaluateWindowsOnHost(Operation *op, ArrayRef<HostTensor> operands) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (auto filtered = dyn_cast<ds::ConvOp>(op))
    return convolve(filtered, operands, type);
  if (auto pooled = dyn_cast<ds::PoolOp>(op))
    return pool(pooled, operands[0], type);
  return std::nullopt;
}

} // namespace deepstride
