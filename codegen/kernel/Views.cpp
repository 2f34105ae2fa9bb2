// Follows transposes and slices between an anchor and the buffers of its kernel.
#include "codegen/kernel/Views.h"

using namespace mlir;

namespace deepstride {

static View wholeView(Value buffer, const SizeVector &sizes) {
  View view{buffer, 0, {}};
  for (auto [size, stride] : llvm::zip_equal(sizes, KernelBuilder::strides(sizes)))
    view.axes.push_back({size, stride, true, std::nullopt});
  return view;
}

std::optional<View> operandView(KernelBuilder &k, Value value) {
  if (isa<BlockArgument>(value))
    return wholeView(k.bufferOf(value), k.sizesOf(value));
  Operation *op = value.getDefiningOp();
  if (!isa<ds::TransposeOp, ds::SliceOp>(op))
    return std::nullopt;
  auto inner = operandView(k, op->getOperand(0));
  if (!inner)
    return std::nullopt;
  View view = *inner;
  if (auto transpose = dyn_cast<ds::TransposeOp>(op)) {
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      view.axes[to] = inner->axes[from];
    return view;
  }
  auto slice = cast<ds::SliceOp>(op);
  for (auto [axis, start, step, size] :
       llvm::zip_equal(view.axes, *sizesFromAttribute(slice.getStarts()), slice.getSteps(), k.sizesOf(value))) {
    view.offset = view.offset + start * axis.stride;
    axis.stride = axis.stride * SizeExpr(step);
    axis.size = size;
  }
  return view;
}

std::optional<View> resultView(KernelBuilder &k, Operation *op) {
  if (k.yielded().size() != 1)
    return std::nullopt;
  Value value = k.yielded().front();
  View view = wholeView(k.outputBuffer(0), k.sizesOf(value));
  if (value == op->getResult(0))
    return view;
  auto transpose = value.getDefiningOp<ds::TransposeOp>();
  if (!transpose || transpose.getInput() != op->getResult(0))
    return std::nullopt;
  View moved = view;
  for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
    moved.axes[from] = view.axes[to];
  return moved;
}

} // namespace deepstride
