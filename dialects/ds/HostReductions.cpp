// Evaluates on host tensors what combines or chooses elements: reductions, running sums, indexing, padding and
// products. These are small: they stand in front of an operand that steers a shape. Floats are summed and multiplied
// from the first to the last and rounded at every step; kernels may take them in another order.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostElements.h"

#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;

namespace deepstride {

/// More multiplications than these are computation, not shape arithmetic.
static constexpr int64_t workLimit = int64_t(1) << 22;

/// The index counted from the front; nothing where it is outside of the axis.
static std::optional<int64_t> wrapIndex(int64_t index, int64_t size) {
  index += index < 0 ? size : 0;
  return index >= 0 && index < size ? std::optional(index) : std::nullopt;
}

/// As integers wrap.
static int64_t negated(int64_t value) { return static_cast<int64_t>(-static_cast<uint64_t>(value)); }

/// The elements that each element of the result is made of, in row-major order. `axes` vanish or become 1.
static std::vector<SmallVector<int64_t>> groupsOf(const HostTensor &input, ArrayRef<int64_t> axes, int64_t results) {
  std::vector<SmallVector<int64_t>> groups(static_cast<size_t>(results));
  SmallVector<int64_t> kept = input.shape;
  for (int64_t axis : axes)
    kept[axis] = 1;
  for (int64_t i = 0, n = input.count(); i < n; ++i) {
    SmallVector<int64_t> position = positionOf(i, input.shape);
    for (int64_t axis : axes)
      position[axis] = 0;
    groups[static_cast<size_t>(flatOf(position, kept))].push_back(i);
  }
  return groups;
}

/// Floats only, but for sums, products and extrema; nothing over no elements, where it matters what the type is.
static std::optional<HostNumber> combine(ds::ReduceKind kind, const HostTensor &input, ArrayRef<int64_t> group) {
  using ds::ReduceKind;
  bool isFloat = isa<FloatType>(input.element), isOrdered = kind == ReduceKind::max || kind == ReduceKind::min;
  bool isPlain =
      kind == ReduceKind::sum || kind == ReduceKind::prod || kind == ReduceKind::l1 || kind == ReduceKind::sum_square;
  if ((!isFloat && !isPlain && !isOrdered) || (group.empty() && !isPlain))
    return std::nullopt;
  if (isOrdered) {
    HostNumber best = numberAt(input, group.front());
    for (int64_t at : group.drop_front())
      if (HostNumber next = numberAt(input, at);
          kind == ReduceKind::max ? isGreater(next, best, input.element) : isLess(next, best, input.element))
        best = next;
    return best;
  }
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t at : group)
    largest = std::max(largest, numberAt(input, at).real);
  double shift = std::isfinite(largest) ? largest : 0;
  HostNumber total = kind == ReduceKind::prod ? HostNumber{1.0, 1} : HostNumber{0.0, 0};
  for (int64_t at : group) {
    HostNumber x = numberAt(input, at);
    if (kind == ReduceKind::l1)
      x = {std::fabs(x.real), x.integer < 0 && !input.element.isUnsignedInteger() ? negated(x.integer) : x.integer};
    else if (kind == ReduceKind::l2 || kind == ReduceKind::sum_square)
      x = productOf(x, x, input.element);
    else if (kind == ReduceKind::log_sum_exp)
      x.real = rounded(std::exp(rounded(x.real - shift, input.element)), input.element);
    total = kind == ReduceKind::prod ? productOf(total, x, input.element) : sumOf(total, x, input.element);
  }
  switch (kind) {
  case ReduceKind::mean: total.real /= static_cast<double>(group.size()); break;
  case ReduceKind::l2: total.real = std::sqrt(total.real); break;
  case ReduceKind::log_sum: total.real = std::log(total.real); break;
  case ReduceKind::log_sum_exp: total.real = rounded(std::log(total.real), input.element) + shift; break;
  default: break;
  }
  return total;
}

static std::optional<HostTensor> reduce(ds::ReduceOp op, const HostTensor &input, RankedTensorType type) {
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  auto groups = groupsOf(input, op.getAxes(), result.count());
  for (auto [i, group] : llvm::enumerate(groups)) {
    auto value = combine(op.getKind(), input, group);
    if (!value)
      return std::nullopt;
    setNumber(result, static_cast<int64_t>(i), *value);
  }
  return result;
}

static std::optional<HostTensor> argReduce(ds::ArgReduceOp op, const HostTensor &input, RankedTensorType type) {
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  bool isMax = op.getKind() == ds::ReduceKind::max;
  auto groups = groupsOf(input, {static_cast<int64_t>(op.getAxis())}, result.count());
  for (auto [i, group] : llvm::enumerate(groups)) {
    if (group.empty())
      return std::nullopt;
    int64_t best = 0;
    for (int64_t k = 1; k < static_cast<int64_t>(group.size()); ++k) {
      HostNumber next = numberAt(input, group[k]), known = numberAt(input, group[best]);
      bool isBetter = isMax ? isGreater(next, known, input.element) : isLess(next, known, input.element);
      bool isWorse = isMax ? isGreater(known, next, input.element) : isLess(known, next, input.element);
      if (isBetter || (op.getSelectLast() && !isWorse))
        best = k;
    }
    setNumber(result, static_cast<int64_t>(i), {0.0, best});
  }
  return result;
}

static std::optional<HostTensor> accumulate(ds::CumulativeOp op, const HostTensor &input, RankedTensorType type) {
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  bool isSum = op.getKind() == ds::ReduceKind::sum;
  int64_t axis = op.getAxis(), length = input.shape[axis], groupCount = length ? input.count() / length : 0;
  for (SmallVector<int64_t> &group : groupsOf(input, {axis}, groupCount)) {
    if (op.getReverse())
      std::reverse(group.begin(), group.end());
    HostNumber total = isSum ? HostNumber{0.0, 0} : HostNumber{1.0, 1};
    for (int64_t at : group) {
      HostNumber x = numberAt(input, at);
      HostNumber next = isSum ? sumOf(total, x, input.element) : productOf(total, x, input.element);
      setNumber(result, at, op.getExclusive() ? total : next);
      total = next;
    }
  }
  return result;
}

/// Where along one axis of the operand an element of the padded axis comes from; nothing for the fill value.
static std::optional<int64_t> padSource(ds::PadKind kind, int64_t at, int64_t size) {
  if (at >= 0 && at < size)
    return at;
  switch (kind) {
  case ds::PadKind::constant: return std::nullopt;
  case ds::PadKind::edge: return std::clamp<int64_t>(at, 0, size - 1);
  case ds::PadKind::wrap: return ((at % size) + size) % size;
  case ds::PadKind::reflect: {
    int64_t period = std::max<int64_t>(2 * (size - 1), 1), place = ((at % period) + period) % period;
    return place < size ? place : period - place;
  }
  }
  return std::nullopt;
}

static std::optional<HostTensor> pad(ds::PadOp op, const HostTensor &input, const HostTensor &value,
                                     RankedTensorType type) {
  auto low = sizesFromAttribute(op.getLow());
  if (!low || (op.getKind() != ds::PadKind::constant && input.count() == 0))
    return std::nullopt;
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    SmallVector<int64_t> position = positionOf(i, type.getShape());
    bool isFill = false;
    for (size_t axis = 0; axis < position.size(); ++axis) {
      auto begin = (*low)[axis].constant();
      if (!begin)
        return std::nullopt;
      auto from = padSource(op.getKind(), position[axis] - *begin, input.shape[axis]);
      isFill |= !from;
      position[axis] = from.value_or(0);
    }
    if (isFill)
      copyElements(value, 0, result, i);
    else
      copyElements(input, flatOf(position, input.shape), result, i);
  }
  return result;
}

static std::optional<HostTensor> gatherElements(ds::GatherElementsOp op, const HostTensor &input,
                                                const HostTensor &indices, RankedTensorType type) {
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  int64_t axis = op.getAxis();
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    SmallVector<int64_t> position = positionOf(i, type.getShape());
    auto index = wrapIndex(numberAt(indices, i).integer, input.shape[axis]);
    if (!index)
      return std::nullopt;
    position[axis] = *index;
    for (size_t other = 0; other < position.size(); ++other)
      if (position[other] >= input.shape[other])
        return std::nullopt;
    copyElements(input, flatOf(position, input.shape), result, i);
  }
  return result;
}

/// The position of the slice that a tuple of indices names, behind `first` axes of the batch.
static std::optional<SmallVector<int64_t>> tupleAt(const HostTensor &indices, int64_t tuple, ArrayRef<int64_t> batch,
                                                   const HostTensor &input) {
  SmallVector<int64_t> position(batch);
  int64_t length = indices.shape.back();
  for (int64_t k = 0; k < length; ++k) {
    auto index = wrapIndex(numberAt(indices, tuple * length + k).integer, input.shape[position.size()]);
    if (!index)
      return std::nullopt;
    position.push_back(*index);
  }
  return position;
}

static int64_t elementsFrom(ArrayRef<int64_t> shape, size_t axis) {
  int64_t count = 1;
  for (int64_t size : shape.drop_front(axis))
    count *= size;
  return count;
}

static std::optional<HostTensor> gatherNd(ds::GatherNdOp op, const HostTensor &input, const HostTensor &indices,
                                          RankedTensorType type) {
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  ArrayRef<int64_t> tuples = ArrayRef(indices.shape).drop_back();
  size_t batchDims = op.getBatchDims(), depth = batchDims + static_cast<size_t>(indices.shape.back());
  int64_t slice = elementsFrom(input.shape, depth);
  for (int64_t i = 0, n = elementsFrom(tuples, 0); i < n; ++i) {
    SmallVector<int64_t> place = positionOf(i, tuples);
    auto position = tupleAt(indices, i, ArrayRef(place).take_front(batchDims), input);
    if (!position)
      return std::nullopt;
    int64_t from = flatOf(*position, ArrayRef(input.shape).take_front(depth)) * slice;
    for (int64_t k = 0; k < slice; ++k)
      copyElements(input, from + k, result, i * slice + k);
  }
  return result;
}

/// Updates meet what is there one after the other.
static void scatterElement(ds::ScatterKind kind, const HostTensor &updates, int64_t from, HostTensor &result,
                           int64_t to) {
  Type element = result.element;
  HostNumber update = numberAt(updates, from), old = numberAt(result, to);
  switch (kind) {
  case ds::ScatterKind::assign: return copyElements(updates, from, result, to);
  case ds::ScatterKind::add: return setNumber(result, to, sumOf(old, update, element));
  case ds::ScatterKind::mul: return setNumber(result, to, productOf(old, update, element));
  case ds::ScatterKind::max: return setNumber(result, to, isGreater(update, old, element) ? update : old);
  case ds::ScatterKind::min: return setNumber(result, to, isLess(update, old, element) ? update : old);
  }
}

static std::optional<HostTensor> scatter(Operation *op, ArrayRef<HostTensor> operands) {
  const HostTensor &input = operands[0], &indices = operands[1], &updates = operands[2];
  HostTensor result = HostTensor::allocate(input.element, input.shape);
  std::copy_n(input.data, input.bytes(), result.owned->data());
  if (auto single = dyn_cast<ds::ScatterElementsOp>(op)) {
    for (int64_t i = 0, n = updates.count(); i < n; ++i) {
      SmallVector<int64_t> position = positionOf(i, updates.shape);
      auto index = wrapIndex(numberAt(indices, i).integer, input.shape[single.getAxis()]);
      if (!index)
        return std::nullopt;
      position[single.getAxis()] = *index;
      for (size_t other = 0; other < position.size(); ++other)
        if (position[other] >= input.shape[other])
          return std::nullopt;
      scatterElement(single.getKind(), updates, i, result, flatOf(position, input.shape));
    }
    return result;
  }
  auto rows = cast<ds::ScatterNdOp>(op);
  size_t depth = static_cast<size_t>(indices.shape.back());
  int64_t slice = elementsFrom(input.shape, depth);
  for (int64_t i = 0, n = elementsFrom(ArrayRef(indices.shape).drop_back(), 0); i < n; ++i) {
    auto position = tupleAt(indices, i, {}, input);
    if (!position)
      return std::nullopt;
    int64_t to = flatOf(*position, ArrayRef(input.shape).take_front(depth)) * slice;
    for (int64_t k = 0; k < slice; ++k)
      scatterElement(rows.getKind(), updates, i * slice + k, result, to + k);
  }
  return result;
}

static std::optional<HostTensor> matmul(ds::MatmulOp op, const HostTensor &a, const HostTensor &b,
                                        RankedTensorType type) {
  ArrayRef<int64_t> shape = type.getShape();
  bool isTransposed[] = {op.getTranspose()[0], op.getTranspose()[1]};
  size_t rank = shape.size();
  int64_t depth = a.shape[a.shape.size() - (isTransposed[0] ? 2 : 1)];
  HostTensor result = HostTensor::allocate(type.getElementType(), shape);
  if (result.count() * std::max<int64_t>(depth, 1) > workLimit)
    return std::nullopt;
  auto offsetOf = [&](const HostTensor &tensor, bool isSwapped, ArrayRef<int64_t> batch, int64_t row, int64_t column) {
    SmallVector<int64_t> position;
    ArrayRef<int64_t> own = ArrayRef(tensor.shape).drop_back(2);
    for (size_t i = 0; i < own.size(); ++i)
      position.push_back(own[i] == 1 ? 0 : batch[batch.size() - own.size() + i]);
    position.push_back(isSwapped ? column : row);
    position.push_back(isSwapped ? row : column);
    return flatOf(position, tensor.shape);
  };
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    SmallVector<int64_t> position = positionOf(i, shape);
    ArrayRef<int64_t> batch = ArrayRef(position).drop_back(2);
    HostNumber total;
    for (int64_t k = 0; k < depth; ++k) {
      HostNumber x = numberAt(a, offsetOf(a, isTransposed[0], batch, position[rank - 2], k)),
                 y = numberAt(b, offsetOf(b, isTransposed[1], batch, k, position[rank - 1]));
      total = sumOf(total, productOf(x, y, result.element), result.element);
    }
    setNumber(result, i, total);
  }
  return result;
}

/// A bound of what the absolute values of all elements add up, or multiply, to, where they are whole numbers; infinite
/// where they are not.
static double wholeBound(const HostTensor &tensor, bool isProduct) {
  double bound = isProduct ? 1 : 0;
  for (int64_t i = 0, n = tensor.count(); i < n; ++i) {
    double size = std::fabs(numberAt(tensor, i).real);
    if (std::trunc(size) != size) // NaN, too
      return std::numeric_limits<double>::infinity();
    bound = isProduct ? bound * std::max(size, 1.0) : bound + size;
  }
  return bound;
}

bool dependsOnOrder(Operation *op, ArrayRef<HostTensor> operands) {
  using ds::ReduceKind;
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  if (!type)
    return false;
  if (auto pooled = dyn_cast<ds::PoolOp>(op))
    return pooled.getKind() != ds::PoolKind::max;
  if (isa<ds::SoftmaxOp, ds::LayerNormOp, ds::RmsNormOp>(op))
    return true;
  if (!isa<ds::ReduceOp, ds::CumulativeOp, ds::MatmulOp, ds::ConvOp>(op))
    return false;
  double limit = std::ldexp(1.0, static_cast<int>(type.getFPMantissaWidth())), bound;
  if (isa<ds::MatmulOp, ds::ConvOp>(op)) {
    bound = wholeBound(operands[0], false) * wholeBound(operands[1], false);
    if (operands.size() > 2)
      bound += wholeBound(operands[2], false);
  } else {
    auto reduction = dyn_cast<ds::ReduceOp>(op);
    ReduceKind kind = reduction ? reduction.getKind() : cast<ds::CumulativeOp>(op).getKind();
    if (kind == ReduceKind::max || kind == ReduceKind::min)
      return false;
    bound = wholeBound(operands[0], kind == ReduceKind::prod);
    if (kind == ReduceKind::sum_square)
      bound *= bound;
    else if (kind != ReduceKind::sum && kind != ReduceKind::prod && kind != ReduceKind::l1)
      return true; // what follows the sum rounds in ways of its own
  }
  return !(bound <= limit);
}

std::optional<HostTensor> evaluateChoiceOnHost(Operation *op, ArrayRef<HostTensor> operands) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (auto reduction = dyn_cast<ds::ReduceOp>(op))
    return reduce(reduction, operands[0], type);
  if (auto reduction = dyn_cast<ds::ArgReduceOp>(op))
    return argReduce(reduction, operands[0], type);
  if (auto running = dyn_cast<ds::CumulativeOp>(op))
    return accumulate(running, operands[0], type);
  if (auto padding = dyn_cast<ds::PadOp>(op))
    return pad(padding, operands[0], operands[1], type);
  if (auto taken = dyn_cast<ds::GatherElementsOp>(op))
    return gatherElements(taken, operands[0], operands[1], type);
  if (auto taken = dyn_cast<ds::GatherNdOp>(op))
    return gatherNd(taken, operands[0], operands[1], type);
  if (isa<ds::ScatterElementsOp, ds::ScatterNdOp>(op))
    return scatter(op, operands);
  if (auto product = dyn_cast<ds::MatmulOp>(op))
    return matmul(product, operands[0], operands[1], type);
  return evaluateRowsOnHost(op, operands);
}

HostTensor nonZeroOnHost(const HostTensor &input) {
  Type index = IntegerType::get(input.element.getContext(), 64);
  SmallVector<int64_t> places;
  for (int64_t i = 0, n = input.count(); i < n; ++i)
    if (HostNumber x = numberAt(input, i); isa<FloatType>(input.element) ? x.real != 0 : x.integer != 0)
      places.push_back(i);
  auto rank = static_cast<int64_t>(input.shape.size()), count = static_cast<int64_t>(places.size());
  HostTensor result = HostTensor::allocate(index, {rank, count});
  for (auto [i, place] : llvm::enumerate(places))
    for (auto [axis, position] : llvm::enumerate(positionOf(place, input.shape)))
      setNumber(result, static_cast<int64_t>(axis) * count + static_cast<int64_t>(i), {0.0, position});
  return result;
}

} // namespace deepstride
