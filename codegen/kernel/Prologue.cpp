// Emits what a product's kernel does to the rows that it reads, row by row, as kernels of these ops alone do: rows have
// the same bits.
#include "codegen/kernel/Prologue.h"

#include "codegen/kernel/PointwiseOps.h"
#include "codegen/lower/Rows.h"
#include "dialects/ds/Norms.h"
#include "dialects/ds/Reductions.h"

using namespace mlir;

namespace deepstride {

Prologue::Prologue(KernelBuilder &k, ds::LinearOp product) : k(k), product(product) {
  for (Operation *op : k.ops())
    if (isa<ds::ConstantOp>(op) || ds::givesSharedNumber(op) || !ds::preparesRows(op))
      continue;
    else if (ds::isNorm(op))
      norm = op;
    else if (auto codes = dyn_cast<ds::QuantizeRowsOp>(op))
      quantize = codes;
    else
      steps.push_back(op);
  if (!*this)
    return;
  SizeVector sizes = k.sizesOf(product.getInput());
  shape = {deepstride::product(ArrayRef(sizes).drop_back()), sizes.back()};
  changed = quantize ? quantize.getInput() : product.getInput();
  for (Operation *op : steps)
    for (Value operand : op->getOperands())
      if (!llvm::is_contained(steps, operand.getDefiningOp()) && !operand.getDefiningOp<ds::ConstantOp>())
        operands.insert(operand);
}

LogicalResult Prologue::verify() {
  Operation *first = norm ? norm : !steps.empty() ? steps.front() : quantize.getOperation();
  if (!product.getPanel())
    return first->emitOpError("cannot be in the kernel of a product");
  auto isInMemory = [](Value value) {
    return isa<BlockArgument>(value) || ds::givesSharedNumber(value.getDefiningOp()); // by then
  };
  if (norm) {
    auto layer = dyn_cast<ds::LayerNormOp>(norm);
    uint64_t axis = layer ? layer.getAxis() : cast<ds::RmsNormOp>(norm).getAxis();
    if (axis + 1 != k.sizesOf(norm->getResult(0)).size() || !isa<FloatType>(k.elementOf(norm->getResult(0))))
      return norm->emitOpError("cannot be in the kernel of a product");
    for (auto [number, value] : llvm::enumerate(norm->getOperands()))
      if (!isInMemory(value) || (number > 0 && k.sizesOf(value).size() != 1))
        return norm->emitOpError("expects operands in memory, scale and bias of one axis");
  }
  for (Operation *op : steps) {
    auto element = cast<ds::PerElement>(op);
    if (!element.isPointwise() || element.scannedOperand() || !isRows(op->getResult(0)))
      return op->emitOpError("cannot be computed of the rows that a product reads");
  }
  for (Value value : operands) {
    bool isNormed = norm && value == norm->getResult(0);
    if (!isNormed && (!isInMemory(value) || !(isRows(value) || k.sizesOf(value).size() <= 1)))
      return first->emitOpError("expects rows in memory, and beside them numbers, one or one for each column");
  }
  // What is not changed is read from memory.
  if (quantize && steps.empty() && !norm && !isInMemory(quantize.getInput()))
    return quantize.emitOpError("expects rows in memory");
  return success();
}

void Prologue::reserve() {
  const SizeExpr &depth = shape.back();
  block = k.scratchOf(storageType(k.elementOf(product.getInput())), depth * SizeExpr(rowsPerBlock));
  if (norm && isChanged())
    line = k.scratchOf(storageType(k.elementOf(norm->getResult(0))), depth);
  if (!quantize)
    return;
  Type given = storageType(k.elementOf(quantize.getInput()));
  if (!steps.empty())
    changedLine = k.scratchOf(given, depth);
  scales = k.scratchOf(given, SizeExpr(rowsPerBlock));
}

View Prologue::viewOf(Value value) {
  SizeVector row = {shape.back()};
  if (norm && value == norm->getResult(0))
    return k.broadcastView(line, row, shape);
  bool isNumber = !isa<BlockArgument>(value) && ds::givesSharedNumber(value.getDefiningOp());
  Value buffer = isNumber ? numbers->at(value) : k.bufferOf(value);
  return k.broadcastView(buffer, isRows(value) ? shape : k.sizesOf(value), shape);
}

void Prologue::emitNorm(RowSpace &space, const View &target, Value from, Value to) {
  View source = k.broadcastView(k.bufferOf(norm->getOperand(0)), shape, shape);
  emitNormRow(k, space, norm, source, target, {from}, {to});
}

/// Makes row `to` of the target of row `from` of what the steps read, up to the one that gives `made`.
void Prologue::emitSteps(RowSpace &space, const View &target, Value made, Value from, Value to) {
  auto count = static_cast<size_t>(llvm::find(steps, made.getDefiningOp()) - steps.begin()) + 1;
  ArrayRef<Operation *> first = ArrayRef(steps).take_front(count);
  SmallVector<View> views = llvm::map_to_vector(operands, [&](Value value) { return viewOf(value); });
  auto pointers = llvm::map_to_vector(views, [](const View &view) { return &view; });
  auto change = [&](OpBuilder &b, ValueRange elements) {
    return emitPointwiseOps(k, b, first, operands.getArrayRef(), elements).lookup(made);
  };
  space.map(target, k.elementOf(made), pointers, {from}, change, {to});
}

/// Makes row `to` of the block of row `from` of what is in memory.
void Prologue::emitRow(RowSpace &space, const View &target, Value from, Value to) {
  Value zero = k.constant(0);
  if (norm && !isChanged())
    return emitNorm(space, target, from, to);
  if (norm)
    emitNorm(space, k.broadcastView(line, shape, shape), from, zero);
  if (!quantize)
    return emitSteps(space, target, changed, from, to);
  if (!steps.empty())
    emitSteps(space, k.broadcastView(changedLine, shape, shape), changed, from, zero);
  View given = steps.empty() ? viewOf(changed) : k.broadcastView(changedLine, {shape.back()}, shape);
  Value scale = emitQuantizeRow(k, space, quantize, given, target, {from}, {to});
  k.store(scale, scales, to, k.elementOf(quantize.getScales()));
}

Matrix Prologue::emit(Value firstRow, Value count, Value from, Value to, Value parts) {
  Value zero = k.constant(0), one = k.constant(1);
  RowSpace space(k, shape, {1});
  View target = k.broadcastView(block, shape, shape);
  k.loop(zero, count, one, [&](Value row) { emitRow(space, target, k.add(firstRow, row), row); });
  for (unsigned number = 0; number < k.yielded().size(); ++number) {
    Value yielded = k.yielded()[number];
    bool isNorm = norm && yielded == norm->getResult(0);
    bool isStep = yielded != product.getInput() && llvm::is_contained(steps, yielded.getDefiningOp());
    if (!isNorm && !isStep && yielded != product.getInput())
      continue;
    Type element = k.elementOf(yielded);
    View stored = k.broadcastView(k.outputBuffer(number), shape, shape);
    auto shareOf = [&](Value part) { return k.divide(k.mul(count, part), parts); };
    k.loop(shareOf(from), shareOf(to), one, [&](Value row) {
      Value place = k.add(firstRow, row);
      if (isNorm && isChanged()) // what the block holds is not what is yielded
        return emitNorm(space, stored, place, place);
      if (isStep) {
        if (norm)
          emitNorm(space, k.broadcastView(line, shape, shape), place, zero);
        return emitSteps(space, stored, yielded, place, place);
      }
      auto copy = [&](OpBuilder &b, ValueRange v) { return fromStorage(b, k.loc, v[0], element); };
      space.map(stored, element, {&target}, {row}, copy, {place});
    });
  }
  return {block, zero, k.index(shape.back()), one};
}

} // namespace deepstride
