// Accumulation of derivatives, and the inverse of broadcasting.
#include "passes/training/Derivative.h"

using namespace mlir;

namespace deepstride {
using ds::ReduceKind;

void Derivative::give(unsigned operand, Value value) {
  if (!wants(operand) || refused)
    return;
  Value target = in(operand);
  Value fitted = b.broadcast(sumTo(value, b.sizes(target)), b.sizes(target));
  fitted = fitted ? b.cast(fitted, b.element(target)) : fitted;
  if (!fitted)
    return refuse("of sizes that are known only when the model runs; pin dimensions with --dim");
  Value &total = gradients[target];
  total = total ? b.add(total, fitted) : fitted;
}

void Derivative::refuse(const Twine &why) {
  if (!refused)
    op->emitError() << "'" << op->getName() << "' has no derivative " << why
                    << ", and a value whose gradient is asked for depends on it";
  refused = true;
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

const RuleTable::Rule *RuleTable::find(Operation *op) const {
  auto found = rules.find(op->getName().getStringRef());
  return found == rules.end() ? nullptr : &found->second;
}

const RuleTable &RuleTable::get() {
  static const RuleTable all = [] {
    RuleTable table;
    for (auto add : {addAttentionRules, addElementwiseRules, addIndexingRules, addMovementRules, addNormalizationRules,
                     addProductRules, addReductionRules})
      add(table);
    return table;
  }();
  return all;
}

} // namespace deepstride
