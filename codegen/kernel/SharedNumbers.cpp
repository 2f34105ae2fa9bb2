// Emits numbers as kernels of reductions and of elementwise ops emit them: they have the same bits.
#include "codegen/kernel/SharedNumbers.h"

#include "codegen/lower/Rows.h"
#include "dialects/ds/Reductions.h"

using namespace mlir;

namespace deepstride {

LogicalResult verifySharedNumbers(KernelBuilder &k) {
  for (Operation *op : k.ops()) {
    if (!ds::givesSharedNumber(op))
      continue;
    auto element = dyn_cast<ds::PerElement>(op);
    if (element && (!element.isPointwise() || element.scannedOperand() || isa<ds::BitcastOp>(op)))
      return op->emitOpError("cannot be computed before the rows of its kernel");
    for (const SizeExpr &size : k.sizesOf(op->getResult(0)))
      if (!size.isConstant(1))
        return op->emitOpError("expects one number, as it is computed before the rows of its kernel");
  }
  return success();
}

/// An extreme of all of what is in memory.
static Value emitExtreme(KernelBuilder &k, ds::ReduceOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  RowSpace whole(k, shape, op.getAxes());
  View view = k.broadcastView(k.bufferOf(op.getInput()), shape, shape);
  Value extreme = whole.reduce(op.getKind(), element, {&view}, {},
                               [&](OpBuilder &b, ValueRange v) { return fromStorage(b, k.loc, v[0], element); });
  return fromStorage(k.b, k.loc, toStorage(k.b, k.loc, extreme, element), element);
}

/// The value of each number, in its compute type.
static llvm::DenseMap<Value, Value> emitNumbers(KernelBuilder &k) {
  llvm::DenseMap<Value, Value> values;
  for (Operation *op : k.ops()) {
    if (!ds::givesSharedNumber(op))
      continue;
    Value result = op->getResult(0);
    if (auto reduce = dyn_cast<ds::ReduceOp>(op)) {
      values[result] = emitExtreme(k, reduce);
      continue;
    }
    SmallVector<Value> operands;
    SmallVector<Type> elements;
    for (Value operand : op->getOperands()) {
      elements.push_back(k.elementOf(operand));
      if (auto constant = operand.getDefiningOp<ds::ConstantOp>())
        operands.push_back(scalarConstant(k.b, k.loc, elements.back(),
                                          cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>()));
      else if (isa<BlockArgument>(operand))
        operands.push_back(k.load(k.bufferOf(operand), k.constant(0), elements.back()));
      else
        operands.push_back(values.at(operand));
    }
    values[result] = emitPointwise(k.b, k.loc, op, operands, elements, k.elementOf(result));
  }
  return values;
}

SharedNumbers emitSharedNumbers(KernelBuilder &k) {
  SharedNumbers places;
  llvm::DenseMap<Value, Value> values = emitNumbers(k);
  for (Operation *op : k.ops()) {
    auto isOther = [](Operation *user) { return !ds::givesSharedNumber(user); };
    if (!ds::givesSharedNumber(op) || llvm::none_of(op->getUsers(), isOther))
      continue;
    Value number = op->getResult(0);
    Type element = k.elementOf(number);
    // As far apart as lines of a cache, so that scratch behind it stays aligned.
    Value place = k.scratchOf(storageType(element),
                              SizeExpr(static_cast<int64_t>(64 * 8 / storageType(element).getIntOrFloatBitWidth())));
    k.store(values.at(number), place, k.constant(0), element);
    places[number] = place;
  }
  return places;
}

LogicalResult lowerSharedNumbers(KernelBuilder &k) {
  if (failed(verifySharedNumbers(k)))
    return failure();
  k.setGrid(SizeExpr(1), 1);
  SizeExpr flops = 0;
  for (Operation *op : k.ops())
    if (auto reduce = dyn_cast<ds::ReduceOp>(op))
      flops = flops + product(k.sizesOf(reduce.getInput()));
  k.setFlops(flops);
  Value zero = k.constant(0);
  k.loop(k.begin, k.end, k.constant(1), [&](Value) {
    llvm::DenseMap<Value, Value> values = emitNumbers(k);
    for (auto [number, yielded] : llvm::enumerate(k.yielded()))
      k.store(values.at(yielded), k.outputBuffer(static_cast<unsigned>(number)), zero, k.elementOf(yielded));
  });
  return success();
}

} // namespace deepstride
