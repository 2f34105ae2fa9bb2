// Kernels that walk one axis in order: arg-reductions, running sums, positions. One grid item is one line along the
// axis.
#include "codegen/lower/Lines.h"

#include "runtime/abi/ds_abi.h"

using namespace mlir;

namespace deepstride {

LogicalResult lowerArgReduce(KernelBuilder &k, ds::ArgReduceOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  Lines lines(k, shape, op.getAxis());
  bool greatest = op.getKind() == ds::ReduceKind::max;
  Value input = k.bufferOf(op.getInput());
  Value bestCell = k.cell(computeType(element)), indexCell = k.cell(k.b.getIndexType());
  k.setFlops(product(shape));
  if (lines.length.constant().value_or(0) == 0) { // nothing is greatest among nothing
    Value isEmpty = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, k.index(lines.length), k.constant(0));
    k.failIf(isEmpty, DS_SHAPE_MISMATCH);
    k.end = arith::SelectOp::create(k.b, k.loc, isEmpty, k.begin, k.end);
  }
  lines.forEach([&](Value outer, Value within) {
    auto element0 = [&](Value i) { return k.load(input, lines.at(outer, within, i, lines.length), element); };
    memref::StoreOp::create(k.b, k.loc, element0(k.constant(0)), bestCell);
    memref::StoreOp::create(k.b, k.loc, k.constant(0), indexCell);
    k.loop(k.constant(1), k.index(lines.length), k.constant(1), [&](Value i) {
      Value x = element0(i), best = memref::LoadOp::create(k.b, k.loc, bestCell);
      Value better = precedes(k, x, best, element, greatest);
      if (op.getSelectLast()) // ties go to the later element
        better = arith::XOrIOp::create(k.b, k.loc, precedes(k, best, x, element, greatest),
                                       arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true)));
      memref::StoreOp::create(k.b, k.loc, arith::SelectOp::create(k.b, k.loc, better, x, best), bestCell);
      Value index = memref::LoadOp::create(k.b, k.loc, indexCell);
      memref::StoreOp::create(k.b, k.loc, arith::SelectOp::create(k.b, k.loc, better, i, index), indexCell);
    });
    Value index =
        arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), memref::LoadOp::create(k.b, k.loc, indexCell));
    memref::StoreOp::create(k.b, k.loc, index, k.outputBuffer(0), k.add(k.mul(outer, k.index(lines.inner)), within));
  });
  return success();
}

LogicalResult lowerCumulative(KernelBuilder &k, ds::CumulativeOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  Lines lines(k, shape, op.getAxis());
  Value run = k.cell(computeType(element)), length = k.index(lines.length);
  k.setFlops(product(shape));
  lines.forEach([&](Value outer, Value within) {
    memref::StoreOp::create(k.b, k.loc, neutralElement(k.b, k.loc, op.getKind(), element), run);
    k.loop(k.constant(0), length, k.constant(1), [&](Value step) {
      Value i = op.getReverse() ? k.sub(k.sub(length, k.constant(1)), step) : step;
      Value at = lines.at(outer, within, i, lines.length);
      Value before = memref::LoadOp::create(k.b, k.loc, run);
      Value after =
          emitCombine(k.b, k.loc, op.getKind(), before, k.load(k.bufferOf(op.getInput()), at, element), element);
      memref::StoreOp::create(k.b, k.loc, after, run);
      k.store(op.getExclusive() ? before : after, k.outputBuffer(0), at, element);
    });
  });
  return success();
}

LogicalResult lowerNonZero(KernelBuilder &k, ds::NonZeroOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  Value count = k.index(k.sizesOf(op.getResult())[1]), place = k.cell(k.b.getIndexType());
  k.setGrid(1, 1);
  k.setFlops(product(shape));
  memref::StoreOp::create(k.b, k.loc, k.constant(0), place);
  k.loop(k.constant(0), k.index(product(shape)), k.constant(1), [&](Value item) {
    Value x = k.load(k.bufferOf(op.getInput()), item, element);
    Value isSet = emitCast(k.b, k.loc, x, element, k.b.getI1Type());
    auto branch = scf::IfOp::create(k.b, k.loc, isSet, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    Value column = memref::LoadOp::create(k.b, k.loc, place);
    for (auto [axis, position] : llvm::enumerate(k.delinearize(item, shape))) {
      Value wide = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), position);
      Value to = k.add(k.mul(k.constant(static_cast<int64_t>(axis)), count), column);
      memref::StoreOp::create(k.b, k.loc, wide, k.outputBuffer(0), to);
    }
    memref::StoreOp::create(k.b, k.loc, k.add(column, k.constant(1)), place);
  });
  return success();
}

} // namespace deepstride
