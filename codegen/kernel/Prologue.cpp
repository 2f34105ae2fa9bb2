// Emits the norm before a product, row by row, as the kernel of a norm alone does: rows have the same bits.
#include "codegen/kernel/Prologue.h"

#include "codegen/lower/Rows.h"
#include "dialects/ds/Norms.h"

using namespace mlir;

namespace deepstride {

Prologue::Prologue(KernelBuilder &k, ds::LinearOp product)
    : k(k), product(product), norm(product.getInput().getDefiningOp()) {
  if (!norm)
    return;
  for (; ds::roundedNorm(norm); norm = norm->getOperand(0).getDefiningOp())
    roundings.insert(roundings.begin(), norm);
  SizeVector shape = k.sizesOf(product.getInput());
  rows = deepstride::product(ArrayRef(shape).drop_back());
  depth = shape.back();
}

LogicalResult Prologue::verify() {
  int64_t last = static_cast<int64_t>(k.sizesOf(product.getInput()).size()) - 1;
  auto layer = dyn_cast<ds::LayerNormOp>(norm);
  auto rms = dyn_cast<ds::RmsNormOp>(norm);
  if ((!layer && !rms) || (layer ? layer.getAxis() : rms.getAxis()) != static_cast<uint64_t>(last) ||
      !k.elementOf(input()).isF32() || !product.getPanel())
    return norm->emitOpError("cannot be in the kernel of a product");
  for (Value value : norm->getOperands())
    if (!isa<BlockArgument>(value) || (value != input() && k.sizesOf(value).size() != 1))
      return norm->emitOpError("expects operands in memory, scale and bias of one axis");
  return success();
}

void Prologue::reserve() {
  block = k.scratchOf(storageType(k.elementOf(product.getInput())), depth * SizeExpr(rowsPerBlock));
  if (!roundings.empty())
    line = k.scratchOf(k.b.getF32Type(), depth);
}

Matrix Prologue::emit(Value first, Value count, Value from, Value to, Value parts) {
  Value zero = k.constant(0), one = k.constant(1), width = k.index(depth);
  SizeVector shape = {rows, depth};
  RowSpace space(k, shape, {1});
  View source = k.broadcastView(k.bufferOf(input()), shape, shape), target = k.broadcastView(block, shape, shape);
  k.loop(zero, count, one, [&](Value row) {
    if (roundings.empty())
      return emitNormRow(k, space, norm, source, target, {k.add(first, row)}, {row});
    View whole = k.broadcastView(line, shape, shape);
    emitNormRow(k, space, norm, source, whole, {k.add(first, row)}, {zero});
    auto round = [&](OpBuilder &b, ValueRange v) {
      Value number = v[0];
      for (Operation *cast : roundings)
        number = emitCast(b, k.loc, number, k.elementOf(cast->getOperand(0)), k.elementOf(cast->getResult(0)));
      return number;
    };
    space.map(target, k.elementOf(product.getInput()), {&whole}, {zero}, round, {row});
  });
  for (auto [number, yielded] : llvm::enumerate(k.yielded())) {
    if (yielded != norm->getResult(0))
      continue;
    View stored = k.broadcastView(k.outputBuffer(number), shape, shape);
    auto shareOf = [&](Value part) { return k.divide(k.mul(count, part), parts); };
    k.loop(shareOf(from), shareOf(to), one, [&](Value row) {
      if (!roundings.empty()) // what the block holds is not what is yielded
        return emitNormRow(k, space, norm, source, stored, {k.add(first, row)});
      space.map(stored, k.b.getF32Type(), {&target}, {row}, [](OpBuilder &, ValueRange v) { return v[0]; },
                {k.add(first, row)});
    });
  }
  return {block, zero, width, one};
}

} // namespace deepstride
