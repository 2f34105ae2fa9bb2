// Kernels that select or join elements by index: gathers, scatters, concat, pad. Indices come from the user's data, so
// each is checked; a bad one ends the call with DS_INDEX_OUT_OF_RANGE and never touches memory outside a buffer.
#include "codegen/kernel/Views.h"
#include "codegen/lower/Copies.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/ds_abi.h"

using namespace mlir;

namespace deepstride {

static Value loadIndex(KernelBuilder &k, Value indices, Value position) {
  Value raw = memref::LoadOp::create(k.b, k.loc, k.bufferOf(indices), position);
  return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), raw);
}

/// Puts one stored element into `count` places of a flat buffer, whole vectors first.
static void emitFill(KernelBuilder &k, Value element, Value to, Value toOffset, Value count) {
  Value zero = k.constant(0), one = k.constant(1), tail = zero;
  if (k.target.lanes > 1) {
    Value width = k.constant(k.target.lanes);
    tail = k.mul(k.divide(count, width), width);
    Value wide = vector::BroadcastOp::create(k.b, k.loc, VectorType::get({k.target.lanes}, element.getType()), element);
    k.loop(zero, tail, width, [&](Value i) { vector::StoreOp::create(k.b, k.loc, wide, to, k.add(toOffset, i)); });
  }
  k.loop(tail, count, one, [&](Value i) { memref::StoreOp::create(k.b, k.loc, element, to, k.add(toOffset, i)); });
}

static Value isMore(KernelBuilder &k, const SizeExpr &x, const SizeExpr &y) {
  return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sgt, k.index(x), k.index(y));
}

static Value select(KernelBuilder &k, Value condition, Value x, Value y) {
  return arith::SelectOp::create(k.b, k.loc, condition, x, y);
}

/// How many elements a slice of the operand gives: none where it has none, whatever the indices say.
static Value readable(KernelBuilder &k, const SizeExpr &slice, ArrayRef<SizeExpr> shape) {
  return arith::SelectOp::create(k.b, k.loc, isMore(k, product(shape), 0), k.index(slice), k.constant(0));
}

/// `count`, or 0 and a failed call, where indices or updates reach beyond the operand on an axis that is not indexed.
static Value fitting(KernelBuilder &k, Value count, ArrayRef<SizeExpr> indexShape, ArrayRef<SizeExpr> shape,
                     int64_t axis) {
  Value bad = isMore(k, 1, product(shape));
  for (size_t i = 0; i < shape.size(); ++i)
    if (static_cast<int64_t>(i) != axis && indexShape[i] != shape[i])
      bad = arith::OrIOp::create(k.b, k.loc, bad, isMore(k, indexShape[i], shape[i]));
  bad = arith::AndIOp::create(k.b, k.loc, bad, isMore(k, product(indexShape), 0));
  k.failIf(bad, DS_SHAPE_MISMATCH);
  return arith::SelectOp::create(k.b, k.loc, bad, k.constant(0), count);
}

/// Gathers single elements of each row of the operand, in vectors where a processor gathers them. One item is a row.
static void gatherFromRows(KernelBuilder &k, ds::GatherOp op, const SizeExpr &rows, const SizeExpr &rowLength,
                           const SizeExpr &count) {
  auto known = count.constant();
  k.setGrid(rows, known && *known > 0 ? std::max<int64_t>(1, 4096 / *known) : 1);
  Value input = k.bufferOf(op.getInput()), indices = k.bufferOf(op.getIndices()), output = k.outputBuffer(0);
  Value size = k.index(rowLength), indexCount = k.index(count), zero = k.constant(0), tail = zero;
  Value isEmpty = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, size, zero);
  k.failIf(arith::AndIOp::create(k.b, k.loc, isEmpty, isMore(k, count, 0)), DS_INDEX_OUT_OF_RANGE);
  Value end = select(k, isEmpty, zero, indexCount); // nothing can be read from nothing
  Type stored = cast<MemRefType>(input.getType()).getElementType();
  int64_t bits = stored.getIntOrFloatBitWidth(), lanes = k.target.lanes * 32 / std::max<int64_t>(bits, 32);
  bool isVector = k.target.lanes > 1 && bits >= 32;
  if (isVector)
    tail = k.mul(k.divide(end, k.constant(lanes)), k.constant(lanes));
  auto wide = VectorType::get({lanes}, stored), places = VectorType::get({lanes}, k.b.getI64Type());
  auto vectorRow = [&](Value from, Value to) {
    auto splat = [&](Value x) -> Value {
      return vector::BroadcastOp::create(k.b, k.loc, places,
                                         arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), x));
    };
    auto compare = [&](arith::CmpIPredicate how, Value x, Value y) -> Value {
      return arith::CmpIOp::create(k.b, k.loc, how, x, y);
    };
    Value none = splat(zero), length = splat(size);
    Value all =
        vector::ConstantMaskOp::create(k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()), ArrayRef<int64_t>(lanes));
    k.loop(zero, tail, k.constant(lanes), [&](Value i) {
      Type given = cast<MemRefType>(indices.getType()).getElementType();
      Value place = vector::LoadOp::create(k.b, k.loc, VectorType::get({lanes}, given), indices, i);
      if (given != places.getElementType())
        place = arith::ExtSIOp::create(k.b, k.loc, places, place);
      Value wrapped = arith::AddIOp::create(k.b, k.loc, place, length);
      place = select(k, compare(arith::CmpIPredicate::slt, place, none), wrapped, place);
      Value outside = compare(arith::CmpIPredicate::uge, place, length);
      k.failIf(vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::OR, outside), DS_INDEX_OUT_OF_RANGE);
      place = select(k, outside, none, place);
      if (auto fixed = rowLength.constant(); fixed && *fixed <= INT32_MAX) // one instruction for twice as many
        place = arith::TruncIOp::create(k.b, k.loc, VectorType::get({lanes}, k.b.getI32Type()), place);
      Value rest = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(wide));
      Value value = vector::GatherOp::create(k.b, k.loc, wide, input, ValueRange{from}, place, all, rest);
      vector::StoreOp::create(k.b, k.loc, value, output, k.add(to, i));
    });
  };
  k.loop(k.begin, k.end, k.constant(1), [&](Value row) {
    Value from = k.mul(row, size), to = k.mul(row, indexCount);
    if (isVector)
      vectorRow(from, to);
    k.loop(tail, end, k.constant(1), [&](Value i) {
      Value position = k.checkedIndex(loadIndex(k, op.getIndices(), i), size);
      Value element = memref::LoadOp::create(k.b, k.loc, input, k.add(from, position));
      memref::StoreOp::create(k.b, k.loc, element, output, k.add(to, i));
    });
  });
}

/// A row of codes, from `from` on, times its scales, from `scaleFrom` on, to `to`: whole vectors of each group first.
static void emitScaledRow(KernelBuilder &k, ds::GatherOp op, Value from, Value scaleFrom, Value to) {
  Value codes = k.bufferOf(op.getInput()), scales = k.bufferOf(op.getScales()), output = k.outputBuffer(0);
  int64_t length = *k.sizesOf(op.getInput())[1].constant(), groups = *k.sizesOf(op.getScales())[1].constant();
  int64_t group = length / groups, whole = k.target.lanes > 1 ? group / k.target.lanes * k.target.lanes : 0;
  Type real = k.elementOf(op.getScales()), word = k.b.getI32Type();
  auto scaled = [&](Value code, Value scale, Type wide, Type number) -> Value {
    Value integer = arith::ExtSIOp::create(k.b, k.loc, wide, code);
    return arith::MulFOp::create(k.b, k.loc, arith::SIToFPOp::create(k.b, k.loc, number, integer), scale);
  };
  k.loop(k.constant(0), k.constant(groups), k.constant(1), [&](Value g) {
    Value scale = memref::LoadOp::create(k.b, k.loc, scales, k.add(scaleFrom, g));
    Value start = k.mul(g, k.constant(group)), tail = k.constant(whole);
    Value first = k.add(from, start), target = k.add(to, start);
    if (whole > 0) {
      auto wide = [&](Type element) { return VectorType::get({k.target.lanes}, element); };
      Value all = vector::BroadcastOp::create(k.b, k.loc, wide(real), scale);
      k.loop(k.constant(0), tail, k.constant(k.target.lanes), [&](Value i) {
        Value code = vector::LoadOp::create(k.b, k.loc, wide(k.b.getI8Type()), codes, k.add(first, i));
        vector::StoreOp::create(k.b, k.loc, scaled(code, all, wide(word), wide(real)), output, k.add(target, i));
      });
    }
    k.loop(tail, k.constant(group), k.constant(1), [&](Value i) {
      Value code = memref::LoadOp::create(k.b, k.loc, codes, k.add(first, i));
      memref::StoreOp::create(k.b, k.loc, scaled(code, scale, word, real), output, k.add(target, i));
    });
  });
}

LogicalResult lowerGather(KernelBuilder &k, ds::GatherOp op) {
  SizeVector shape = k.sizesOf(op.getInput()), indexShape = k.sizesOf(op.getIndices());
  int64_t axis = op.getAxis();
  SizeExpr outer = product(ArrayRef(shape).take_front(axis)), slice = product(ArrayRef(shape).drop_front(axis + 1));
  SizeExpr count = product(indexShape);
  auto known = slice.constant();
  k.setFlops(op.getScales() ? count * slice : SizeExpr(0));
  if (slice.isConstant(1) && !outer.isConstant(1)) {
    gatherFromRows(k, op, outer, shape[axis], count);
    return success();
  }
  k.setGrid(outer * count, known && *known > 0 ? std::max<int64_t>(1, 4096 / *known) : 1);
  Value input = k.bufferOf(op.getInput()), output = k.outputBuffer(0);
  Value axisSize = k.index(shape[axis]), length = k.index(slice), indexCount = k.index(count);
  Value copied = readable(k, slice, shape);
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    Value which = k.remainder(item, indexCount);
    Value block = k.divide(item, indexCount);
    Value position = k.checkedIndex(loadIndex(k, op.getIndices(), which), axisSize);
    Value from = k.mul(k.add(k.mul(block, axisSize), position), length);
    if (op.getScales()) {
      Value groups = k.index(k.sizesOf(op.getScales())[1]);
      return emitScaledRow(k, op, from, k.mul(position, groups), k.mul(item, length));
    }
    emitCopy(k, input, from, output, k.mul(item, length), copied);
  });
  return success();
}

LogicalResult lowerGatherElements(KernelBuilder &k, ds::GatherElementsOp op) {
  SizeVector shape = k.sizesOf(op.getInput()), indexShape = k.sizesOf(op.getIndices());
  int64_t axis = op.getAxis();
  k.setGrid(product(indexShape), 1024);
  k.setFlops(0);
  Value axisSize = k.index(shape[axis]);
  k.loop(k.begin, fitting(k, k.end, indexShape, shape, axis), k.constant(1), [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, indexShape);
    at[axis] = k.checkedIndex(loadIndex(k, op.getIndices(), item), axisSize);
    Value element = memref::LoadOp::create(k.b, k.loc, k.bufferOf(op.getInput()), k.linearize(at, shape));
    memref::StoreOp::create(k.b, k.loc, element, k.outputBuffer(0), item);
  });
  return success();
}

/// The offset of the slice that index tuple number `row` names; axes from `first` on are indexed.
static Value tupleOffset(KernelBuilder &k, Value indices, Value row, int64_t tuple, ArrayRef<SizeExpr> shape,
                         int64_t first, Value start) {
  SizeVector strides = KernelBuilder::strides(shape);
  Value offset = start;
  for (int64_t i = 0; i < tuple; ++i) {
    Value raw = loadIndex(k, indices, k.add(k.mul(row, k.constant(tuple)), k.constant(i)));
    Value position = k.checkedIndex(raw, k.index(shape[first + i]));
    offset = k.add(offset, k.mul(position, k.index(strides[first + i])));
  }
  return offset;
}

LogicalResult lowerGatherNd(KernelBuilder &k, ds::GatherNdOp op) {
  SizeVector shape = k.sizesOf(op.getInput()), indexShape = k.sizesOf(op.getIndices());
  int64_t batch = op.getBatchDims(), tuple = *indexShape.back().constant();
  SizeExpr tuples = product(ArrayRef(indexShape).drop_back());
  SizeExpr perBatch = product(ArrayRef(indexShape).drop_back().drop_front(batch));
  SizeExpr slice = product(ArrayRef(shape).drop_front(batch + tuple));
  k.setGrid(tuples, 16);
  k.setFlops(0);
  Value length = k.index(slice), batchStride = k.index(product(ArrayRef(shape).drop_front(batch)));
  Value copied = readable(k, slice, shape);
  k.loop(k.begin, k.end, k.constant(1), [&](Value row) {
    Value batchIndex = batch ? k.divide(row, k.index(perBatch)) : k.constant(0);
    Value from = tupleOffset(k, op.getIndices(), row, tuple, shape, batch, k.mul(batchIndex, batchStride));
    emitCopy(k, k.bufferOf(op.getInput()), from, k.outputBuffer(0), k.mul(row, length), copied);
  });
  return success();
}

static Value combineScattered(KernelBuilder &k, ds::ScatterKind kind, Value old, Value update, Type element) {
  switch (kind) {
  case ds::ScatterKind::assign: return update;
  case ds::ScatterKind::add: return emitBinary(k.b, k.loc, ds::BinaryKind::add, old, update, element, element);
  case ds::ScatterKind::mul: return emitBinary(k.b, k.loc, ds::BinaryKind::mul, old, update, element, element);
  case ds::ScatterKind::max: return emitBinary(k.b, k.loc, ds::BinaryKind::max, old, update, element, element);
  case ds::ScatterKind::min: return emitBinary(k.b, k.loc, ds::BinaryKind::min, old, update, element, element);
  }
  llvm_unreachable("all kinds handled");
}

static void scatterOne(KernelBuilder &k, ds::ScatterKind kind, Value updates, Value from, Value to, Type element) {
  Value output = k.outputBuffer(0);
  Value update = k.load(updates, from, element);
  Value value = kind == ds::ScatterKind::assign
                    ? update
                    : combineScattered(k, kind, k.load(output, to, element), update, element);
  k.store(value, output, to, element);
}

/// Elements per item that are worth another thread, where every item takes `count` updates.
static int64_t scatterGrain(const SizeExpr &count) {
  auto known = count.constant();
  return known && *known > 0 ? std::max<int64_t>(16, 16384 / *known) : 512;
}

// The output already holds what a scatter does not replace: it is the buffer of the operand. Two updates may hit one
// element, and their order is part of the result, so threads split what no two updates share: the lines beside the
// indexed axis here, the elements of a slice in scatter_nd. Every thread walks all updates of its part in order.
LogicalResult lowerScatterElements(KernelBuilder &k, ds::ScatterElementsOp op) {
  SizeVector shape = k.sizesOf(op.getInput()), indexShape = k.sizesOf(op.getIndices());
  int64_t axis = op.getAxis();
  Type element = k.elementOf(op.getInput());
  ArrayRef<SizeExpr> before = ArrayRef(indexShape).take_front(axis), after = ArrayRef(indexShape).drop_front(axis + 1);
  k.setGrid(product(before) * product(after), scatterGrain(indexShape[axis]));
  k.setFlops(0);
  Value zero = k.constant(0), one = k.constant(1), axisSize = k.index(shape[axis]), inner = k.index(product(after));
  Value end = fitting(k, k.end, indexShape, shape, axis), length = k.index(indexShape[axis]);
  // Lines [begin, end) are a part of the first block of `inner` lines, whole blocks and a part of the last one.
  Value first = k.divide(k.begin, inner);
  Value last = k.divide(k.sub(k.add(end, inner), one), inner);
  k.loop(first, last, one, [&](Value block) {
    Value start = k.mul(block, inner);
    Value from = k.sub(arith::MaxSIOp::create(k.b, k.loc, k.begin, start), start);
    Value to = k.minimum(k.sub(end, start), inner);
    SmallVector<Value> outer = k.delinearize(block, before);
    k.loop(zero, length, one, [&](Value row) {
      k.loop(from, to, one, [&](Value line) {
        SmallVector<Value> at(outer);
        at.push_back(row);
        llvm::append_range(at, k.delinearize(line, after));
        Value item = k.linearize(at, indexShape);
        at[axis] = k.checkedIndex(loadIndex(k, op.getIndices(), item), axisSize);
        scatterOne(k, op.getKind(), k.bufferOf(op.getUpdates()), item, k.linearize(at, shape), element);
      });
    });
  });
  return success();
}

// The output already holds what the box does not replace: it is the buffer of `into`.
LogicalResult lowerInsert(KernelBuilder &k, ds::InsertOp op) {
  SizeVector box = k.sizesOf(op.getUpdate()), shape = k.sizesOf(op.getInto());
  SizeVector starts = *sizesFromAttribute(op.getStarts()), strides = KernelBuilder::strides(shape);
  // Whole trailing axes lie together with the axis before them, on both sides.
  size_t inner = box.size();
  while (inner > 0 && starts[inner - 1].isConstant(0) && box[inner - 1] == shape[inner - 1])
    --inner;
  inner = inner > 0 ? inner - 1 : 0;
  ArrayRef<SizeExpr> outer = ArrayRef(box).take_front(inner);
  SizeExpr run = product(ArrayRef(box).drop_front(inner)), first = 0;
  for (auto [start, stride] : llvm::zip_equal(starts, strides))
    first = first + start * stride;
  auto known = run.constant(); // elements that are copied are worth another thread from 16384 on
  k.setGrid(product(outer), known && *known > 0 ? std::max<int64_t>(1, 16384 / *known) : 1);
  k.setFlops(0);
  auto update = operandView(k, op.getUpdate());
  if (!update)
    return op.emitOpError("shares a kernel with more than windows of what it inserts");
  Value offset = k.index(first);
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    Value to = offset;
    SmallVector<Value> at = k.delinearize(item, outer);
    for (auto [index, stride] : llvm::zip(at, strides))
      to = k.add(to, k.mul(index, k.index(stride)));
    emitCopyRest(k, *update, at, k.outputBuffer(0), to);
  });
  return success();
}

LogicalResult lowerScatterNd(KernelBuilder &k, ds::ScatterNdOp op) {
  SizeVector shape = k.sizesOf(op.getInput()), indexShape = k.sizesOf(op.getIndices());
  int64_t tuple = *indexShape.back().constant();
  Type element = k.elementOf(op.getInput());
  SizeExpr slice = product(ArrayRef(shape).drop_front(tuple)), tuples = product(ArrayRef(indexShape).drop_back());
  // One item at least: indices are checked where slices are empty, too.
  k.setGrid(SizeExpr::max(slice, 1), scatterGrain(tuples));
  k.setFlops(0);
  Value zero = k.constant(0), one = k.constant(1);
  // The updates are one slice per tuple; a missing element must not be read.
  SizeVector updates = k.sizesOf(op.getUpdates()), slices(indexShape.begin(), indexShape.end() - 1);
  slices.insert(slices.end(), shape.begin() + tuple, shape.end());
  Value rows = fitting(k, k.index(tuples), slices, updates, -1);
  Value length = k.index(slice), end = k.minimum(k.end, readable(k, slice, shape));
  k.loop(zero, rows, one, [&](Value row) {
    Value to = tupleOffset(k, op.getIndices(), row, tuple, shape, 0, zero), from = k.mul(row, length);
    if (op.getKind() == ds::ScatterKind::assign) {
      Value count = k.sub(arith::MaxSIOp::create(k.b, k.loc, end, k.begin), k.begin);
      emitCopy(k, k.bufferOf(op.getUpdates()), k.add(from, k.begin), k.outputBuffer(0), k.add(to, k.begin), count);
      return;
    }
    k.loop(k.begin, end, one, [&](Value i) {
      scatterOne(k, op.getKind(), k.bufferOf(op.getUpdates()), k.add(from, i), k.add(to, i), element);
    });
  });
  return success();
}

LogicalResult lowerConcat(KernelBuilder &k, ds::ConcatOp op) {
  SizeVector shape = k.sizesOf(op.getResult());
  int64_t axis = op.getAxis();
  SizeExpr outer = product(ArrayRef(shape).take_front(axis)), inner = product(ArrayRef(shape).drop_front(axis + 1));
  k.setGrid(outer, 1);
  k.setFlops(0);
  SmallVector<View> views;
  for (Value input : op.getInputs()) {
    auto view = operandView(k, input);
    if (!view)
      return op.emitOpError("shares a kernel with more than windows of its operands");
    views.push_back(*view);
  }
  Value innerSize = k.index(inner), total = k.mul(k.index(shape[axis]), innerSize);
  k.loop(k.begin, k.end, k.constant(1), [&](Value block) {
    Value to = k.mul(block, total);
    SmallVector<Value> at = k.delinearize(block, ArrayRef(shape).take_front(axis));
    for (const View &view : views) {
      emitCopyRest(k, view, at, k.outputBuffer(0), to);
      to = k.add(to, k.mul(k.index(view.axes[axis].size), innerSize));
    }
  });
  return success();
}

/// Where padding of the given kind reads along an axis of `size`, for position `i` counted from the operand's start.
static Value paddedPosition(KernelBuilder &k, ds::PadKind kind, Value i, Value size) {
  Value zero = k.constant(0), one = k.constant(1), last = k.sub(size, one);
  auto less = [&](Value a, Value c) { return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, a, c); };
  switch (kind) {
  case ds::PadKind::wrap: {
    Value rest = arith::RemSIOp::create(k.b, k.loc, i, arith::MaxSIOp::create(k.b, k.loc, size, one));
    return arith::SelectOp::create(k.b, k.loc, less(rest, zero), arith::AddIOp::create(k.b, k.loc, rest, size), rest);
  }
  case ds::PadKind::reflect: { // period 2 (size - 1); an axis of 1 reflects onto itself
    Value period = arith::MaxSIOp::create(k.b, k.loc, k.mul(k.constant(2), last), one);
    Value rest = arith::RemSIOp::create(k.b, k.loc, i, period);
    rest = arith::SelectOp::create(k.b, k.loc, less(rest, zero), arith::AddIOp::create(k.b, k.loc, rest, period), rest);
    return arith::SelectOp::create(k.b, k.loc, less(last, rest), k.sub(period, rest), rest);
  }
  default: // edge
    return arith::MaxSIOp::create(k.b, k.loc, arith::MinSIOp::create(k.b, k.loc, i, last), zero);
  }
}

/// Padding: one item is a row of the last axis that is padded, with the axes behind it, which are copied as a whole.
/// What lies between the ends is one copy; the ends are filled, or copied place by place.
static void lowerPadRows(KernelBuilder &k, ds::PadOp op) {
  SizeVector shape = k.sizesOf(op.getInput()), result = k.sizesOf(op.getResult());
  SizeVector low = *sizesFromAttribute(op.getLow()), high = *sizesFromAttribute(op.getHigh());
  bool isConstant = op.getKind() == ds::PadKind::constant;
  size_t axis = shape.size() - 1;
  while (axis > 0 && low[axis].isConstant(0) && high[axis].isConstant(0))
    --axis;
  ArrayRef<SizeExpr> outer = ArrayRef(result).take_front(axis);
  SizeExpr inner = product(ArrayRef(shape).drop_front(axis + 1)), row = result[axis] * inner;
  auto known = row.constant();
  k.setGrid(product(outer), known && *known > 0 ? std::max<int64_t>(1, 4096 / *known) : 1);
  Value zero = k.constant(0), length = k.index(row), input = k.bufferOf(op.getInput()), output = k.outputBuffer(0);
  Type storage = storageType(k.elementOf(op.getInput()));
  // Nothing but zeros can be read from nothing.
  Value fill = isConstant ? memref::LoadOp::create(k.b, k.loc, k.bufferOf(op.getValue()), zero).getResult()
                          : arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(storage)).getResult();
  Value nonEmpty = isConstant ? Value() : isMore(k, product(shape), 0);
  auto atLeast = [&](Value x, Value y) -> Value { return arith::MaxSIOp::create(k.b, k.loc, x, y); };
  // Cropped before, padded before, and what lies between both ends.
  Value block = k.index(inner), places = k.index(result[axis]), shift = k.index(low[axis]), size = k.index(shape[axis]);
  Value skipped = atLeast(k.sub(zero, shift), zero);
  Value before = arith::MinSIOp::create(k.b, k.loc, atLeast(shift, zero), places);
  Value count = atLeast(arith::MinSIOp::create(k.b, k.loc, k.sub(size, skipped), k.sub(places, before)), zero);
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    Value line = zero, inside = nonEmpty, to = k.mul(item, length);
    for (auto [number, place] : llvm::enumerate(k.delinearize(item, outer))) {
      Value i = k.sub(place, k.index(low[number])), limit = k.index(shape[number]);
      if (isConstant) {
        Value legal = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult, i, limit);
        inside = inside ? arith::AndIOp::create(k.b, k.loc, inside, legal).getResult() : legal;
      } else {
        i = paddedPosition(k, op.getKind(), i, limit);
      }
      line = k.add(k.mul(line, limit), i);
    }
    Value from = k.mul(line, size), copied = inside ? select(k, inside, count, zero) : count;
    auto end = [&](Value first, Value last) {
      if (isConstant)
        return emitFill(k, fill, output, k.add(to, k.mul(first, block)), k.mul(k.sub(last, first), block));
      auto branch = scf::IfOp::create(k.b, k.loc, nonEmpty, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(branch.elseBlock());
      emitFill(k, fill, output, k.add(to, k.mul(first, block)), k.mul(k.sub(last, first), block));
      k.b.setInsertionPointToStart(branch.thenBlock());
      k.loop(first, last, k.constant(1), [&](Value place) {
        Value position = k.add(from, paddedPosition(k, op.getKind(), k.sub(place, shift), size));
        Value target = k.add(to, k.mul(place, block));
        if (!inner.isConstant(1))
          return emitCopy(k, input, k.mul(position, block), output, target, block);
        memref::StoreOp::create(k.b, k.loc, memref::LoadOp::create(k.b, k.loc, input, position), output, target);
      });
    };
    end(zero, before);
    emitCopy(k, input, k.mul(k.add(from, skipped), block), output, k.add(to, k.mul(before, block)),
             k.mul(copied, block));
    end(k.add(before, copied), places);
  });
}

LogicalResult lowerPad(KernelBuilder &k, ds::PadOp op) {
  k.setFlops(0);
  if (!k.sizesOf(op.getInput()).empty()) {
    lowerPadRows(k, op);
    return success();
  }
  k.setGrid(1, 1); // a scalar, to which nothing is added
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    Value element = memref::LoadOp::create(k.b, k.loc, k.bufferOf(op.getInput()), item);
    memref::StoreOp::create(k.b, k.loc, element, k.outputBuffer(0), item);
  });
  return success();
}

} // namespace deepstride
