// Accumulation of derivatives, and the inverse of broadcasting.
#include "passes/training/Derivative.h"

using namespace mlir;

namespace deepstride {
using ds::ReduceKind;

namespace {
/// What has elements in a part of one axis, and zeros in the rest of it: where a slice came from.
struct Part {
  Value elements;
  int64_t axis;
  SizeExpr low, high;
};
} // namespace

static std::optional<Part> partOf(Value value) {
  auto pad = value.getDefiningOp<ds::PadOp>();
  DenseElementsAttr filled;
  if (!pad || pad.getKind() != ds::PadKind::constant || !matchPattern(pad.getValue(), m_Constant(&filled)) ||
      !filled.isSplat() || !filled.getSplatValue<APFloat>().isZero())
    return std::nullopt;
  auto low = sizesFromAttribute(pad.getLow()), high = sizesFromAttribute(pad.getHigh());
  std::optional<Part> part;
  for (size_t axis = 0; low && high && axis < low->size(); ++axis)
    if (!(*low)[axis].isConstant(0) || !(*high)[axis].isConstant(0)) {
      if (part)
        return std::nullopt;
      part = {pad.getInput(), static_cast<int64_t>(axis), (*low)[axis], (*high)[axis]};
    }
  return part;
}

/// The sum of two such values whose parts meet: the parts beside each other, so that what a split gives back is one
/// concatenation. Null for other values.
static Value besideEachOther(Value first, Value second, DsBuilder &b) {
  auto left = partOf(first), right = partOf(second);
  if (!left || !right || left->axis != right->axis)
    return {};
  int64_t axis = left->axis;
  auto end = [&](const Part &part) { return part.low + b.sizes(part.elements)[axis]; };
  if (end(*right) == left->low)
    std::swap(left, right);
  else if (end(*left) != right->low)
    return {};
  SmallVector<Value> pieces;
  for (Value elements : {left->elements, right->elements})
    if (auto concat = elements.getDefiningOp<ds::ConcatOp>(); concat && static_cast<int64_t>(concat.getAxis()) == axis)
      llvm::append_range(pieces, concat.getInputs());
    else
      pieces.push_back(elements);
  SizeVector low(b.rank(first), SizeExpr(0)), high = low;
  low[axis] = left->low;
  high[axis] = right->high;
  return b.pad(ds::PadKind::constant, b.concat(axis, pieces), b.scalar(b.element(first), 0), low, high);
}

/// Sums what was given so far and another value; parts join the one among all of them that they meet.
static Value sumOfParts(Value total, Value value, DsBuilder &b) {
  if (Value joined = besideEachOther(total, value, b))
    return joined;
  auto sum = partOf(value) ? total.getDefiningOp<ds::BinaryOp>() : ds::BinaryOp();
  if (sum && sum.getKind() == ds::BinaryKind::add)
    for (auto [part, rest] : {std::pair(sum.getRhs(), sum.getLhs()), std::pair(sum.getLhs(), sum.getRhs())})
      if (Value joined = besideEachOther(part, value, b))
        return sumOfParts(rest, joined, b);
  return b.add(total, value);
}

void Derivative::giveTo(Value target, Value value) {
  if (!wants(target) || refused)
    return;
  Value fitted = b.broadcast(sumTo(value, b.sizes(target)), b.sizes(target));
  fitted = fitted ? b.cast(fitted, b.element(target)) : fitted;
  if (!fitted)
    return refuse("of sizes that are known only when the model runs; pin dimensions with --dim");
  Value &total = gradients[target];
  total = total ? sumOfParts(total, fitted, b) : fitted;
}

void Derivative::refuse(const Twine &why) {
  if (!refused)
    op->emitError() << "'" << op->getName() << "' has no derivative " << why
                    << ", and a value whose gradient is asked for depends on it";
  refused = true;
}

void Derivative::moved(Value from, Value to) {
  gradients.erase(from);
  for (auto &[value, gradient] : gradients)
    if (gradient == from)
      gradient = to;
}

Value Derivative::wide(Value value) {
  Type element = b.element(value);
  return element && (element.isF16() || element.isBF16()) ? b.cast(value, b.f32()) : value;
}

Value Derivative::zeros(Type element, ArrayRef<SizeExpr> sizes) { return b.broadcast(b.scalar(element, 0), sizes); }

Value Derivative::number(Type element, const SizeExpr &count) {
  if (auto known = count.constant())
    return b.scalar(element, static_cast<double>(*known));
  return b.cast(b.reshape(b.shape({count}), {}), element);
}

Value Derivative::sumTo(Value value, ArrayRef<SizeExpr> target) {
  SizeVector sizes = b.sizes(value);
  if (!value || sizes.size() < target.size())
    return value;
  int64_t added = static_cast<int64_t>(sizes.size() - target.size());
  SmallVector<int64_t> axes; // summed, in the shape that `split` makes
  SizeVector split;
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    const SizeExpr own = static_cast<int64_t>(axis) < added ? SizeExpr(1) : target[axis - added];
    if (size == own || size.isConstant(1)) {
      split.push_back(size);
    } else if (own.isConstant(1)) {
      axes.push_back(static_cast<int64_t>(split.size()));
      split.push_back(size);
    } else {
      // Known when the model runs: either nothing was repeated, or one element was. Rows of `own` elements are both.
      axes.push_back(static_cast<int64_t>(split.size()));
      split.push_back(SizeExpr::floorDiv(size, SizeExpr::max(own, 1)));
      split.push_back(own);
    }
  }
  Value result = b.reshape(value, split);
  if (!axes.empty())
    result = b.reduce(ReduceKind::sum, result, axes);
  SizeVector final(target.begin(), target.end());
  // Where the value itself has one element for several of the target, the caller broadcasts.
  for (auto [axis, size] : llvm::enumerate(final))
    if (sizes[added + static_cast<int64_t>(axis)].isConstant(1))
      size = 1;
  return b.reshape(result, final);
}

Value Derivative::spread(Value g, int64_t axis, SizeExpr start, int64_t step, const SizeExpr &size) {
  SizeVector sizes = b.sizes(g);
  if (!g)
    return {};
  Value zero = b.scalar(b.element(g), 0);
  SizeExpr count = sizes[axis];
  if (step < 0) { // backwards from `start`: turned around, it begins at the last one
    g = b.sliceAxis(g, axis, SizeExpr::max(count - SizeExpr(1), 0), count, -1);
    start = start + (count - SizeExpr(1)) * SizeExpr(step);
    step = -step;
  }
  if (step > 1) { // every element becomes a row of its own that ends in zeros
    SizeVector rows = sizes, flat = sizes;
    rows.insert(rows.begin() + axis + 1, 1);
    flat[axis] = count * SizeExpr(step);
    SizeVector none(rows.size(), SizeExpr(0)), gap = none;
    gap[axis + 1] = step - 1;
    g = b.reshape(b.pad(ds::PadKind::constant, b.reshape(g, rows), zero, none, gap), flat);
  }
  SizeVector low(sizes.size(), SizeExpr(0)), high = low;
  low[axis] = start;
  high[axis] = size - start - count * SizeExpr(step);
  return b.pad(ds::PadKind::constant, g, zero, low, high);
}

// Only scatter_nd adds whole slices, along the first axis.
Value Derivative::scatter(Value value, int64_t axis, Value indices, const SizeExpr &size) {
  SizeVector sizes = b.sizes(value), front = {size};
  int64_t chosen = b.rank(indices), kept = b.rank(value) - chosen;
  if (!value || !indices)
    return {};
  SmallVector<int64_t> order = axesFrom(axis, axis + chosen), back = axesFrom(1, axis + 1);
  llvm::append_range(order, axesFrom(0, axis));
  llvm::append_range(order, axesFrom(axis + chosen, b.rank(value)));
  back.push_back(0);
  llvm::append_range(back, axesFrom(axis + 1, kept + 1));
  front.insert(front.end(), sizes.begin(), sizes.begin() + axis);
  front.insert(front.end(), sizes.begin() + axis + chosen, sizes.end());
  Value into = zeros(b.element(value), front), tuples = b.insertAxis(indices, chosen),
        slices = b.transpose(value, order);
  Value sums = b.create<ds::ScatterNdOp>({into, tuples, slices}, ds::ScatterKind::add, into, tuples, slices);
  return b.transpose(sums, back);
}

const RuleTable::Rule *RuleTable::find(Operation *op) const {
  auto found = rules.find(op->getName().getStringRef());
  return found == rules.end() ? nullptr : &found->second;
}

const RuleTable &RuleTable::get() {
  static const RuleTable all = [] {
    RuleTable table;
    for (auto add : {addAttentionRules, addBranchRules, addElementwiseRules, addIndexingRules, addLoopRules,
                     addMovementRules, addNormalizationRules, addProductRules, addReductionRules, addWindowRules})
      add(table);
    return table;
  }();
  return all;
}

} // namespace deepstride
