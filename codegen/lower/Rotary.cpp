// Rotary position embedding: one grid item is one row of the last axis. Every pair is read once and written once.
#include "codegen/kernel/HeadRows.h"

using namespace mlir;

namespace deepstride {

LogicalResult lowerRotary(KernelBuilder &k, ds::RotaryOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  ArrayRef<SizeExpr> leading = ArrayRef(shape).drop_back();
  int64_t width = *shape.back().constant();
  SmallVector<unsigned> leadingAxes;
  for (unsigned axis = 0; axis < leading.size(); ++axis)
    leadingAxes.push_back(axis);
  auto input = operandView(k, op.getInput());
  if (!input || !input->axes.back().stride.isConstant(1) || k.yielded().size() != 1)
    return op.emitOpError("shares a kernel with more than windows of contiguous rows");
  auto viewOf = [&](Value table) {
    SizeVector target(leading.begin(), leading.end());
    target.push_back(k.sizesOf(table).back());
    return k.broadcastView(k.bufferOf(table), k.sizesOf(table), target);
  };
  View cosines = viewOf(op.getCosines()), sines = viewOf(op.getSines());

  k.setGrid(product(leading), 8);
  int64_t turned = op.getFirst() ? static_cast<int64_t>(*op.getFirst()) : width;
  k.setFlops(product(leading) * SizeExpr(3 * turned));
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, leading);
    emitRotaryRow(k, op,
                  {input->buffer, k.offsetAt(*input, leadingAxes, at), k.outputBuffer(0),
                   k.mul(item, k.constant(width)), k.offsetAt(cosines, leadingAxes, at),
                   k.offsetAt(sines, leadingAxes, at)});
  });
  return success();
}

} // namespace deepstride
