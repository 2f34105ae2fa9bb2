// Kernels that walk one axis in order: arg-reductions, running sums, positions. One grid item is one line along the
// axis, or a strip of neighbouring lines in vectors.
#include "codegen/lower/Columns.h"
#include "codegen/lower/Lines.h"
#include "codegen/tile/Gemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/ds_abi.h"

using namespace mlir;

namespace deepstride {

namespace {

/// The search for the greatest or least element of one line, or of a vector of lines.
struct ArgReduction {
  ArgReduction(KernelBuilder &k, ds::ArgReduceOp op)
      : k(k), op(op), element(k.elementOf(op.getInput())), shape(k.sizesOf(op.getInput())),
        input(k.bufferOf(op.getInput())), output(k.outputBuffer(0)), length(shape[op.getAxis()]) {
    // Vectors count in 32 bits where those hold every place.
    auto known = length.constant();
    bool isWide = !known || *known > INT32_MAX || computeType(element).getIntOrFloatBitWidth() == 64;
    count = isWide ? k.b.getI64Type() : k.b.getI32Type();
  }

  /// Ends the call where there is nothing to search.
  void requireElements();
  /// Whether x takes the place of an earlier one.
  Value isBetter(Value x, Value best) {
    bool greatest = op.getKind() == ds::ReduceKind::max;
    if (!op.getSelectLast())
      return precedes(k, x, best, element, greatest);
    Value worse = precedes(k, best, x, element, greatest); // ties go to the later element
    auto vector = dyn_cast<VectorType>(worse.getType());
    TypedAttr yes = k.b.getBoolAttr(true);
    Value all = arith::ConstantOp::create(k.b, k.loc, vector ? TypedAttr(DenseElementsAttr::get(vector, yes)) : yes);
    return arith::XOrIOp::create(k.b, k.loc, worse, all);
  }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(k.b, k.loc, condition, x, y); }
  Value places(Value first, int64_t lanes);
  void put(Value place, Value at) {
    Value wide = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), place);
    memref::StoreOp::create(k.b, k.loc, wide, output, at);
  }
  std::pair<Value, Value> searchVectors(Value from, Value to, int64_t lanes);

  KernelBuilder &k;
  ds::ArgReduceOp op;
  Type element, count;
  SizeVector shape;
  Value input, output;
  SizeExpr length;
};

} // namespace

void ArgReduction::requireElements() {
  if (length.constant().value_or(0) != 0)
    return;
  Value isEmpty = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, k.index(length), k.constant(0));
  k.failIf(isEmpty, DS_SHAPE_MISMATCH);
  k.end = select(isEmpty, k.begin, k.end);
}

/// `lanes` copies of an index, as vectors count.
Value ArgReduction::places(Value first, int64_t lanes) {
  return vector::BroadcastOp::create(k.b, k.loc, VectorType::get({lanes}, count),
                                     arith::IndexCastOp::create(k.b, k.loc, count, first));
}

/// The best of `to` elements at `from`, a whole number of vectors and at least one: lanes search for themselves and
/// meet in the end, where a tie is decided as within a lane.
std::pair<Value, Value> ArgReduction::searchVectors(Value from, Value to, int64_t lanes) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  auto load = [&](Value at) {
    auto stored = VectorType::get({lanes}, storageType(element));
    return fromStorage(b, loc, vector::LoadOp::create(b, loc, stored, input, k.add(from, at)), element);
  };
  Value zero = k.constant(0);
  auto loop = scf::ForOp::create(
      b, loc, k.constant(lanes), to, k.constant(lanes), ValueRange{load(zero), places(zero, lanes)},
      [&](OpBuilder &, Location, Value i, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(i.getParentBlock());
        Value x = load(i), better = isBetter(x, carried[0]);
        scf::YieldOp::create(b, loc,
                             ValueRange{select(better, x, carried[0]), select(better, places(i, lanes), carried[1])});
      });
  Value best = loop.getResult(0), place = loop.getResult(1);
  auto counts = VectorType::get({lanes}, count);
  Value number = arith::IndexCastOp::create(b, loc, counts,
                                            vector::StepOp::create(b, loc, VectorType::get({lanes}, b.getIndexType())));
  place = arith::AddIOp::create(b, loc, place, number);
  bool greatest = op.getKind() == ds::ReduceKind::max;
  auto tie = op.getSelectLast() ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt;
  for (int64_t width = lanes / 2; width >= 1; width /= 2) {
    auto half = [&](Value vector, int64_t first) -> Value {
      return vector::ExtractStridedSliceOp::create(b, loc, vector, {first}, {width}, {1});
    };
    Value x = half(best, 0), y = half(best, width), xPlace = half(place, 0), yPlace = half(place, width);
    Value wins = precedes(k, y, x, element, greatest), loses = precedes(k, x, y, element, greatest);
    Value takes =
        select(arith::OrIOp::create(b, loc, wins, loses), wins, arith::CmpIOp::create(b, loc, tie, yPlace, xPlace));
    best = select(takes, y, x);
    place = select(takes, yPlace, xPlace);
  }
  Value single = arith::IndexCastOp::create(b, loc, b.getIndexType(), vector::ExtractOp::create(b, loc, place, 0));
  return {vector::ExtractOp::create(b, loc, best, 0), single};
}

static bool hasVectors(KernelBuilder &k, Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  return k.target.lanes > 1 && (element.isF16() || element.isBF16() || element.isF32() || element.isF64() ||
                                (integer && integer.getWidth() >= 8));
}

static bool lowerArgReduceColumns(KernelBuilder &k, ds::ArgReduceOp op) {
  ArgReduction search(k, op);
  int64_t axis = static_cast<int64_t>(op.getAxis());
  if (!ColumnSpace::exists(k, search.element, search.shape, axis))
    return false;
  search.requireElements();
  ColumnSpace columns(k, search.element, search.shape, axis);
  Value row = k.index(KernelBuilder::strides(search.shape)[axis]), one = k.constant(1);
  columns.forEachStrip([&](const Strip &strip) {
    SmallVector<Value> best = columns.cells(columns.wide(scalarConstant(k.b, k.loc, search.element, 0.0)));
    SmallVector<Value> place = columns.cells(search.places(k.constant(0), columns.lanes));
    for (int64_t v = 0; v < columns.vectors; ++v)
      memref::StoreOp::create(k.b, k.loc, columns.load(strip, search.input, strip.from, v), best[v]);
    k.loop(one, k.index(search.length), one, [&](Value i) {
      Value at = k.add(strip.from, k.mul(i, row)), here = search.places(i, columns.lanes);
      for (int64_t v = 0; v < columns.vectors; ++v) {
        Value x = columns.load(strip, search.input, at, v), before = memref::LoadOp::create(k.b, k.loc, best[v]);
        Value better = search.isBetter(x, before);
        memref::StoreOp::create(k.b, k.loc, search.select(better, x, before), best[v]);
        Value number = memref::LoadOp::create(k.b, k.loc, place[v]);
        memref::StoreOp::create(k.b, k.loc, search.select(better, here, number), place[v]);
      }
    });
    for (int64_t v = 0; v < columns.vectors; ++v) {
      Value number = memref::LoadOp::create(k.b, k.loc, place[v]);
      if (search.count.isInteger(32))
        number = arith::ExtUIOp::create(k.b, k.loc, VectorType::get({columns.lanes}, k.b.getI64Type()), number);
      storeLanes(k, number, search.output, k.add(strip.to, k.constant(v * columns.lanes)), strip.masks[v]);
    }
  });
  return true;
}

LogicalResult lowerArgReduce(KernelBuilder &k, ds::ArgReduceOp op) {
  k.setFlops(product(k.sizesOf(op.getInput())));
  if (lowerArgReduceColumns(k, op))
    return success();
  ArgReduction search(k, op);
  Type element = search.element;
  Lines lines(k, search.shape, op.getAxis());
  Value bestCell = k.cell(computeType(element)), indexCell = k.cell(k.b.getIndexType());
  search.requireElements();
  int64_t lanes = k.target.lanes * 32 / std::max<int64_t>(32, computeType(element).getIntOrFloatBitWidth());
  bool isVector = hasVectors(k, element) && lines.inner.isConstant(1);
  Value length = k.index(search.length), zero = k.constant(0), one = k.constant(1);
  lines.forEach([&](Value outer, Value within) {
    auto element0 = [&](Value i) { return k.load(search.input, lines.at(outer, within, i, lines.length), element); };
    auto keep = [&](Value value, Value place) {
      memref::StoreOp::create(k.b, k.loc, value, bestCell);
      memref::StoreOp::create(k.b, k.loc, place, indexCell);
    };
    Value done = one;
    keep(element0(zero), zero);
    if (isVector) {
      Value width = k.constant(lanes), whole = k.mul(k.divide(length, width), width);
      Value isLong = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sge, length, width);
      done = arith::SelectOp::create(k.b, k.loc, isLong, whole, one);
      auto branch = scf::IfOp::create(k.b, k.loc, isLong, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(branch.thenBlock());
      auto [value, place] = search.searchVectors(k.mul(outer, length), whole, lanes);
      keep(value, place);
    }
    k.loop(done, length, one, [&](Value i) {
      Value x = element0(i), best = memref::LoadOp::create(k.b, k.loc, bestCell);
      Value better = search.isBetter(x, best), index = memref::LoadOp::create(k.b, k.loc, indexCell);
      keep(search.select(better, x, best), search.select(better, i, index));
    });
    search.put(memref::LoadOp::create(k.b, k.loc, indexCell), k.add(k.mul(outer, k.index(lines.inner)), within));
  });
  return success();
}

static bool lowerCumulativeColumns(KernelBuilder &k, ds::CumulativeOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  int64_t axis = static_cast<int64_t>(op.getAxis());
  if (!ColumnSpace::exists(k, element, shape, axis))
    return false;
  ColumnSpace columns(k, element, shape, axis);
  Value row = k.index(KernelBuilder::strides(shape)[axis]), length = k.index(shape[axis]), one = k.constant(1);
  columns.forEachStrip([&](const Strip &strip) {
    SmallVector<Value> runs = columns.cells(columns.wide(neutralElement(k.b, k.loc, op.getKind(), element)));
    k.loop(k.constant(0), length, one, [&](Value step) {
      Value at = k.add(strip.from, k.mul(op.getReverse() ? k.sub(k.sub(length, one), step) : step, row));
      for (int64_t v = 0; v < columns.vectors; ++v) {
        Value before = memref::LoadOp::create(k.b, k.loc, runs[v]);
        Value x = columns.load(strip, k.bufferOf(op.getInput()), at, v);
        Value after = emitCombine(k.b, k.loc, op.getKind(), before, x, element);
        memref::StoreOp::create(k.b, k.loc, after, runs[v]);
        columns.store(strip, op.getExclusive() ? before : after, k.outputBuffer(0), at, v);
      }
    });
  });
  return true;
}

LogicalResult lowerCumulative(KernelBuilder &k, ds::CumulativeOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  k.setFlops(product(shape));
  if (lowerCumulativeColumns(k, op))
    return success();
  Lines lines(k, shape, op.getAxis());
  Value run = k.cell(computeType(element)), length = k.index(lines.length);
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
