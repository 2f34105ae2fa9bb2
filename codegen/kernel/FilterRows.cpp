// Emits what makes the filters of a convolution, filter by filter.
#include "codegen/kernel/FilterRows.h"

#include "codegen/kernel/PointwiseOps.h"
#include "codegen/lower/Rows.h"
#include "dialects/ds/Norms.h"

using namespace mlir;

namespace deepstride {

FilterRows::FilterRows(KernelBuilder &k, ds::ConvOp op) : k(k), op(op), numbers(op.getWeight()) {
  for (Operation *step : k.ops())
    if (ds::preparesFilters(step) && isa<ds::PerElement>(step))
      steps.push_back(step);
  if (steps.empty())
    return;
  if (auto reshape = numbers.getDefiningOp<ds::ReshapeOp>())
    numbers = reshape.getInput();
  shape = k.sizesOf(numbers);
  for (Operation *step : steps)
    for (Value operand : step->getOperands())
      if (!llvm::is_contained(steps, operand.getDefiningOp()) && !operand.getDefiningOp<ds::ConstantOp>())
        operands.insert(operand);
}

LogicalResult FilterRows::verify() {
  SizeVector filters = k.sizesOf(op.getWeight());
  if (numbers.getDefiningOp() != steps.back() || shape.empty() || shape[0] != filters[0] ||
      product(shape) != product(filters))
    return op.emitOpError("has filters that its kernel cannot compute one by one");
  for (Operation *step : steps) {
    auto element = cast<ds::PerElement>(step);
    if (!element.isPointwise() || element.scannedOperand())
      return step->emitOpError("cannot be computed of the filters of a convolution");
  }
  for (Value operand : operands)
    if (!isa<BlockArgument>(operand) || k.sizesOf(operand).size() > shape.size())
      return op.emitOpError("expects what its filters are computed of in memory, of no more axes than they have");
  return success();
}

void FilterRows::reserve(int64_t filters) {
  block = k.scratchOf(storageType(k.elementOf(numbers)), product(ArrayRef(shape).drop_front()) * SizeExpr(filters));
}

Matrix FilterRows::emit(Value first, Value count) {
  SmallVector<int64_t> inner;
  for (size_t axis = 1; axis < shape.size(); ++axis)
    inner.push_back(static_cast<int64_t>(axis));
  RowSpace space(k, shape, inner);
  View target = k.broadcastView(block, shape, shape);
  SmallVector<View> views;
  for (Value operand : operands)
    views.push_back(k.broadcastView(k.bufferOf(operand), k.sizesOf(operand), shape));
  auto pointers = llvm::map_to_vector(views, [](const View &view) { return &view; });
  Value zero = k.constant(0), one = k.constant(1);
  k.loop(zero, count, one, [&](Value row) {
    auto compute = [&](OpBuilder &b, ValueRange elements) {
      return emitPointwiseOps(k, b, steps, operands.getArrayRef(), elements).lookup(numbers);
    };
    space.map(target, k.elementOf(numbers), pointers, {k.add(first, row)}, compute, {row});
  });
  return {block, zero, k.index(product(ArrayRef(shape).drop_front())), one};
}

} // namespace deepstride
