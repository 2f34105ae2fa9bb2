// Kernels that walk one axis in order: arg-reductions, running sums, top-k. One grid item is one line along the axis.
#include "codegen/lower/KernelBuilder.h"

#include "runtime/abi/ds_abi.h"

using namespace mlir;

namespace deepstride {

namespace {

/// Lines along one axis of a dense tensor.
struct Lines {
  Lines(KernelBuilder &k, ArrayRef<SizeExpr> shape, int64_t axis)
      : k(k), inner(product(shape.drop_front(axis + 1))), length(shape[axis]),
        count(product(shape.take_front(axis)) * inner) {}

  void forEach(llvm::function_ref<void(Value outer, Value within)> body) {
    k.setGrid(count, 4);
    Value innerSize = k.index(inner);
    k.loop(k.begin, k.end, k.constant(1), [&](Value line) {
      body(arith::DivUIOp::create(k.b, k.loc, line, innerSize), arith::RemUIOp::create(k.b, k.loc, line, innerSize));
    });
  }
  /// Element `i` of the line, in a tensor whose axis has `size` elements.
  Value at(Value outer, Value within, Value i, const SizeExpr &size) {
    return k.add(k.mul(k.add(k.mul(outer, k.index(size)), i), k.index(inner)), within);
  }

  KernelBuilder &k;
  SizeExpr inner, length, count;
};

} // namespace

/// Whether x comes strictly before y when sorting by greatest (or least); NaN comes before every number.
static Value precedes(KernelBuilder &k, Value x, Value y, Type element, bool greatest) {
  if (!isa<FloatType>(x.getType()))
    return emitBinary(k.b, k.loc, greatest ? ds::BinaryKind::gt : ds::BinaryKind::lt, x, y, element, element);
  Value ordered =
      arith::CmpFOp::create(k.b, k.loc, greatest ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x, y);
  Value xNan = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::UNO, x, x);
  Value yNumber = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::ORD, y, y);
  return arith::OrIOp::create(k.b, k.loc, ordered, arith::AndIOp::create(k.b, k.loc, xNan, yNumber));
}

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

// Insertion into the sorted prefix of k results: k is small against the axis, and ties keep their order.
LogicalResult lowerTopK(KernelBuilder &k, ds::TopKOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  Lines lines(k, shape, op.getAxis());
  SizeExpr kept = k.sizesOf(op.getValues())[op.getAxis()];
  Value limit = k.index(kept), values = k.outputBuffer(0), indices = k.outputBuffer(1);
  Value place = k.cell(k.b.getIndexType());
  k.setFlops(product(shape));
  Value zero = k.constant(0), one = k.constant(1);
  lines.forEach([&](Value outer, Value within) {
    k.loop(zero, k.index(lines.length), one, [&](Value i) {
      Value x = k.load(k.bufferOf(op.getInput()), lines.at(outer, within, i, lines.length), element);
      Value filled = k.minimum(i, limit);
      // Walk back over results that x precedes, shifting them up by one.
      memref::StoreOp::create(k.b, k.loc, filled, place);
      k.loop(zero, filled, one, [&](Value step) {
        Value slot = k.sub(k.sub(filled, one), step);
        Value at = lines.at(outer, within, slot, kept), current = memref::LoadOp::create(k.b, k.loc, place);
        Value other = k.load(values, at, element);
        Value adjacent = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, current, k.add(slot, one));
        Value moves = arith::AndIOp::create(k.b, k.loc, adjacent, precedes(k, x, other, element, op.getLargest()));
        auto branch = scf::IfOp::create(k.b, k.loc, moves, /*withElseRegion=*/false);
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToStart(branch.thenBlock());
        memref::StoreOp::create(k.b, k.loc, slot, place);
        auto fits = scf::IfOp::create(
            k.b, k.loc, arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, k.add(slot, one), limit), false);
        k.b.setInsertionPointToStart(fits.thenBlock());
        Value next = lines.at(outer, within, k.add(slot, one), kept);
        k.store(other, values, next, element);
        memref::StoreOp::create(k.b, k.loc, memref::LoadOp::create(k.b, k.loc, indices, at), indices, next);
      });
      Value slot = memref::LoadOp::create(k.b, k.loc, place);
      auto fits = scf::IfOp::create(k.b, k.loc,
                                    arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, slot, limit), false);
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(fits.thenBlock());
      Value at = lines.at(outer, within, slot, kept);
      k.store(x, values, at, element);
      memref::StoreOp::create(k.b, k.loc, arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), i), indices, at);
    });
  });
  return success();
}

} // namespace deepstride
