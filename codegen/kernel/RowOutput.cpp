// Emits the elementwise ops behind a norm for each element that it is about to store: one read of each operand beside
// the norm's last pass. An operand may lie in the buffer of the result, as it is read before that is written.
#include "codegen/kernel/RowOutput.h"

#include "codegen/kernel/PointwiseOps.h"
#include "dialects/ds/Reductions.h"

using namespace mlir;

namespace deepstride {

RowOutput::RowOutput(KernelBuilder &k, RowSpace &rows, Operation *norm)
    : k(k), rows(rows), norm(norm), stored(norm->getResult(0)) {
  for (Operation *op : k.ops())
    if (norm->isBeforeInBlock(op) && !isa<ds::ConstantOp>(op) && !ds::extremesOf(op))
      ops.push_back(op);
  if (!ops.empty())
    stored = ops.back()->getResult(0);
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (isa<BlockArgument>(operand))
        operands.insert(operand);
  auto number = llvm::find(k.yielded(), stored) - k.yielded().begin();
  result = k.broadcastView(k.outputBuffer(static_cast<unsigned>(number)), rows.shape, rows.shape);
}

LogicalResult RowOutput::verify() {
  for (Operation *op : ops) {
    auto element = dyn_cast<ds::PerElement>(op);
    auto isKnown = [&](Value operand) {
      Operation *from = operand.getDefiningOp();
      return !from || from == norm || isa<ds::ConstantOp>(from) || llvm::is_contained(ops, from);
    };
    if (!element || !element.isPointwise() || element.scannedOperand() || !llvm::all_of(op->getOperands(), isKnown))
      return op->emitOpError("cannot be computed behind the rows of its kernel");
    if (k.sizesOf(op->getResult(0)) != rows.shape)
      return op->emitOpError("expects results as large as the rows of its kernel");
    if (op->getResult(0) != stored && llvm::is_contained(k.yielded(), op->getResult(0)))
      return op->emitOpError("is yielded on the way to what its kernel stores of rows");
  }
  if (!ops.empty() && llvm::is_contained(k.yielded(), norm->getResult(0)))
    return norm->emitOpError("is yielded on the way to what its kernel stores of rows");
  return success();
}

SmallVector<View> RowOutput::views() {
  return llvm::map_to_vector(
      operands, [&](Value operand) { return k.broadcastView(k.bufferOf(operand), k.sizesOf(operand), rows.shape); });
}

Value RowOutput::apply(OpBuilder &b, Value made, ValueRange elements) {
  SmallVector<Value> values(operands.begin(), operands.end()), numbers(elements.begin(), elements.end());
  values.push_back(norm->getResult(0));
  numbers.push_back(toStorage(b, k.loc, made, k.elementOf(norm->getResult(0)))); // rounded as in memory
  return emitPointwiseOps(k, b, ops, values, numbers).lookup(stored);
}

} // namespace deepstride
