// Emits the elementwise ops before a norm or a softmax, one row at a time: what they give is read while it is in cache.
#include "codegen/kernel/RowInput.h"

#include "codegen/kernel/PointwiseOps.h"
#include "codegen/kernel/Views.h"

using namespace mlir;

namespace deepstride {

RowInput::RowInput(KernelBuilder &k, RowSpace &rows, Value value, const View &output)
    : k(k), rows(rows), value(value), source(output) {
  if (auto view = operandView(k, value)) {
    source = *view;
    isInMemory = true;
    return;
  }
  Operation *last = value.getDefiningOp();
  for (Operation *op : k.ops())
    if (op == last || (op->isBeforeInBlock(last) && !isa<ds::ConstantOp>(op)))
      ops.push_back(op);
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (isa<BlockArgument>(operand))
        operands.insert(operand);
  for (auto [number, yielded] : llvm::enumerate(k.yielded()))
    if (yielded == value)
      source = k.broadcastView(k.outputBuffer(number), rows.shape, rows.shape);
}

LogicalResult RowInput::verify() {
  if (isInMemory)
    return success();
  for (Operation *op : ops) {
    auto element = dyn_cast<ds::PerElement>(op);
    // Divisors of integers are looked through for zeros first.
    if (!element || !element.isPointwise() || element.scannedOperand())
      return op->emitOpError("cannot be computed before the rows of its kernel");
    if (k.sizesOf(op->getResult(0)) != rows.shape)
      return op->emitOpError("expects results as large as what the rows of its kernel are");
  }
  for (Value yielded : k.yielded())
    if (yielded != value && llvm::is_contained(ops, yielded.getDefiningOp()))
      return k.kernel.emitOpError("yields what is computed on the way to its rows");
  return success();
}

void RowInput::emit(ArrayRef<Value> row) {
  if (isInMemory)
    return;
  SmallVector<View> views;
  for (Value operand : operands)
    views.push_back(k.broadcastView(k.bufferOf(operand), k.sizesOf(operand), rows.shape));
  auto pointers = llvm::map_to_vector(views, [](const View &view) { return &view; });
  rows.map(source, k.elementOf(value), pointers, row, [&](OpBuilder &b, ValueRange elements) {
    return emitPointwiseOps(k, b, ops, operands.getArrayRef(), elements).lookup(value);
  });
}

} // namespace deepstride
