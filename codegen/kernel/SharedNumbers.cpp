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
    if (isa<ds::ReduceOp>(op) && !isa<BlockArgument>(op->getOperand(0))) {
      if (llvm::count_if(k.ops(), ds::isNorm) != 1)
        return op->emitOpError("takes an extreme of a norm, which is not the only one in its kernel");
      if (!k.sizesOf(op->getOperand(0)).back().constant())
        return op->emitOpError("takes an extreme of rows of unknown length");
    }
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

/// The extremes of all that a norm gives: its rows are normalized one by one, to one line of scratch.
static void emitNormExtremes(KernelBuilder &k, Operation *norm, llvm::DenseMap<Value, Value> &values) {
  Value made = norm->getResult(0), zero = k.constant(0);
  Type element = k.elementOf(made);
  SmallVector<ds::ReduceKind> kinds;
  SmallVector<Value> extremes, cells;
  for (Operation *op : k.ops())
    if (auto reduce = dyn_cast<ds::ReduceOp>(op); reduce && reduce.getInput() == made && ds::givesSharedNumber(op)) {
      kinds.push_back(reduce.getKind());
      extremes.push_back(reduce);
      cells.push_back(k.cell(computeType(element)));
      memref::StoreOp::create(k.b, k.loc, neutralElement(k.b, k.loc, kinds.back(), element), cells.back());
    }
  SizeVector sizes = k.sizesOf(made), row = {sizes.back()}, shape = {product(ArrayRef(sizes).drop_back()), row[0]};
  RowSpace rows(k, shape, {1});
  View source = k.broadcastView(k.bufferOf(norm->getOperand(0)), shape, shape);
  Value line =
      k.scratchOf(storageType(element), SizeExpr::ceilDiv(row[0], 16) * SizeExpr(16)); // whole lines of a cache
  View target = k.broadcastView(line, shape, shape), normal = k.broadcastView(line, row, shape);
  k.loop(zero, k.index(shape[0]), k.constant(1), [&](Value number) {
    emitNormRow(k, rows, norm, source, target, {number}, {zero});
    auto ofRow = rows.reduce(kinds, element, {&normal}, {number}, [&](OpBuilder &b, ValueRange v) {
      return SmallVector<Value>(kinds.size(), fromStorage(b, k.loc, v[0], element));
    });
    for (auto [kind, cell, value] : llvm::zip_equal(kinds, cells, ofRow)) {
      Value before = memref::LoadOp::create(k.b, k.loc, cell);
      memref::StoreOp::create(k.b, k.loc, emitCombine(k.b, k.loc, kind, before, value, element), cell);
    }
  });
  for (auto [extreme, cell] : llvm::zip_equal(extremes, cells))
    values[extreme] = memref::LoadOp::create(k.b, k.loc, cell);
}

/// The value of each number, in its compute type.
static llvm::DenseMap<Value, Value> emitNumbers(KernelBuilder &k) {
  llvm::DenseMap<Value, Value> values;
  for (Operation *op : k.ops()) {
    if (!ds::givesSharedNumber(op))
      continue;
    Value result = op->getResult(0);
    if (auto reduce = dyn_cast<ds::ReduceOp>(op)) {
      if (isa<BlockArgument>(reduce.getInput()))
        values[result] = emitExtreme(k, reduce);
      else if (!values.contains(result))
        emitNormExtremes(k, reduce.getInput().getDefiningOp(), values);
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
