// Emits what a product's kernel does to the rows that it reads, row by row, as kernels of these ops alone do: rows have
// the same bits.
#include "codegen/kernel/Prologue.h"

#include "codegen/lower/Rows.h"
#include "dialects/ds/Norms.h"

using namespace mlir;

namespace deepstride {

Prologue::Prologue(KernelBuilder &k, ds::LinearOp product) : k(k), product(product) {
  for (Operation *step : llvm::reverse(ds::rowSteps(product))) {
    first = first ? first : step;
    if (ds::isNorm(step))
      norm = step;
    else if (!(quantize = dyn_cast<ds::QuantizeRowsOp>(step)))
      roundings.push_back(step);
  }
  if (!first)
    return;
  SizeVector shape = k.sizesOf(product.getInput());
  rows = deepstride::product(ArrayRef(shape).drop_back());
  depth = shape.back();
}

LogicalResult Prologue::verify() {
  int64_t last = static_cast<int64_t>(k.sizesOf(product.getInput()).size()) - 1;
  auto layer = dyn_cast_if_present<ds::LayerNormOp>(norm);
  auto rms = dyn_cast_if_present<ds::RmsNormOp>(norm);
  bool isOfRows = !norm || (layer ? layer.getAxis() : rms.getAxis()) == static_cast<uint64_t>(last);
  if (!isOfRows || !isa<FloatType>(k.elementOf(input())) || !product.getPanel())
    return first->emitOpError("cannot be in the kernel of a product");
  for (Value value : first->getOperands())
    if (!isa<BlockArgument>(value) || (value != input() && k.sizesOf(value).size() != 1))
      return first->emitOpError("expects operands in memory, scale and bias of one axis");
  return success();
}

void Prologue::reserve() {
  Type given = storageType(k.elementOf(input()));
  block = k.scratchOf(storageType(k.elementOf(product.getInput())), depth * SizeExpr(rowsPerBlock));
  if (norm && isChanged())
    line = k.scratchOf(given, depth);
  if (quantize)
    scales = k.scratchOf(given, SizeExpr(rowsPerBlock));
}

/// Makes row `to` of the block of row `from` of what is in memory.
void Prologue::emitRow(RowSpace &space, const View &source, const View &target, Value from, Value to) {
  Value zero = k.constant(0);
  if (norm && !isChanged())
    return emitNormRow(k, space, norm, source, target, {from}, {to});
  View given = source;
  Value place = from;
  if (norm) {
    given = k.broadcastView(line, space.shape, space.shape);
    place = zero;
    emitNormRow(k, space, norm, source, given, {from}, {place});
  }
  if (quantize) {
    Value scale = emitQuantizeRow(k, space, quantize, given, target, {place}, {to});
    return k.store(scale, scales, to, k.elementOf(quantize.getScales()));
  }
  auto round = [&](OpBuilder &b, ValueRange v) {
    Value number = v[0]; // of f32, as it is stored
    for (Operation *cast : roundings)
      number = emitCast(b, k.loc, number, k.elementOf(cast->getOperand(0)), k.elementOf(cast->getResult(0)));
    return number;
  };
  space.map(target, k.elementOf(product.getInput()), {&given}, {place}, round, {to});
}

Matrix Prologue::emit(Value firstRow, Value count, Value from, Value to, Value parts) {
  Value zero = k.constant(0), one = k.constant(1);
  SizeVector shape = {rows, depth};
  RowSpace space(k, shape, {1});
  View source = k.broadcastView(k.bufferOf(input()), shape, shape), target = k.broadcastView(block, shape, shape);
  k.loop(zero, count, one, [&](Value row) { emitRow(space, source, target, k.add(firstRow, row), row); });
  for (auto [number, yielded] : llvm::enumerate(k.yielded())) {
    if (!norm || yielded != norm->getResult(0))
      continue;
    Type element = k.elementOf(yielded);
    View stored = k.broadcastView(k.outputBuffer(number), shape, shape);
    auto shareOf = [&](Value part) { return k.divide(k.mul(count, part), parts); };
    k.loop(shareOf(from), shareOf(to), one, [&](Value row) {
      if (isChanged()) // what the block holds is not what is yielded
        return emitNormRow(k, space, norm, source, stored, {k.add(firstRow, row)});
      auto copy = [&](OpBuilder &b, ValueRange v) { return fromStorage(b, k.loc, v[0], element); };
      space.map(stored, element, {&target}, {row}, copy, {k.add(firstRow, row)});
    });
  }
  return {block, zero, k.index(depth), one};
}

} // namespace deepstride
