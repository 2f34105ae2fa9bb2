// Makes operands of quantized attention: what is done to an element and in which order is what kernels of their own do.
#include "codegen/lower/HeadOperand.h"

#include "codegen/kernel/PointwiseOps.h"
#include "codegen/kernel/Views.h"

using namespace mlir;

namespace deepstride {

bool isLineStep(Operation *op) {
  auto element = dyn_cast_or_null<ds::PerElement>(op);
  return element && element.isPointwise() && !element.scannedOperand() && !isa<ds::ConstantOp>(op);
}

void emitLine(KernelBuilder &k, const Line &target, Value value, ArrayRef<Operation *> steps, ArrayRef<Value> operands,
              ArrayRef<Line> lines) {
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  MLIRContext *context = k.b.getContext();
  auto open = [&](const Line &line) {
    maps.push_back(line.view.axes[0].present ? AffineMap::getMultiDimIdentityMap(1, context)
                                             : AffineMap::get(1, 0, context));
    return k.memrefOf(line.view, line.start, {0}, line.count ? ArrayRef(line.count) : ArrayRef<Value>());
  };
  for (const Line &line : lines)
    inputs.push_back(open(line));
  Value output = open(target);
  linalg::GenericOp::create(k.b, k.loc, inputs, ValueRange{output}, maps, utils::IteratorType::parallel,
                            [&](OpBuilder &b, Location loc, ValueRange arguments) {
                              auto values = emitPointwiseOps(k, b, steps, operands, arguments.drop_back());
                              linalg::YieldOp::create(b, loc,
                                                      toStorage(b, loc, values.lookup(value), k.elementOf(value)));
                            });
}

std::optional<HeadOperand> HeadOperand::of(KernelBuilder &k, Value value, bool isQuery) {
  HeadOperand operand(k, value);
  while (isLineStep(value.getDefiningOp())) {
    Operation *op = value.getDefiningOp();
    Value read;
    for (Value input : op->getOperands())
      if (!input.getDefiningOp<ds::ConstantOp>()) {
        if (read && read != input)
          return std::nullopt;
        read = input;
      }
    if (!read || k.sizesOf(read) != k.sizesOf(value))
      return std::nullopt;
    operand.steps.insert(operand.steps.begin(), op);
    value = read;
  }
  operand.source = operand.shown.rows = value;
  for (auto [number, yielded] : llvm::enumerate(k.yielded()))
    if (yielded == operand.value && !operand.steps.empty())
      operand.output = k.outputBuffer(static_cast<unsigned>(number));
  if (isQuery) {
    operand.computed = RowSource::of(k, value);
    if (operand.computed && operand.computed->isStored())
      operand.computed.reset();
  } else {
    if (!operand.output)
      operand.shown = ds::ShownHeads::of(value, [&](Value of) { return k.sizesOf(of); });
    operand.joined = JoinedHeads::of(k, operand.shown.rows);
  }
  if (operand.joined || operand.computed)
    return operand;
  auto view = operandView(k, operand.shown.rows);
  if (!view)
    return std::nullopt;
  operand.view = *view;
  if (operand.shown.isTurned)
    std::swap(operand.view.axes[2], operand.view.axes[3]);
  return operand;
}

Value HeadOperand::headOffset(ArrayRef<Value> head) {
  return k->offsetAt(view, llvm::to_vector(llvm::seq<unsigned>(0, head.size())), head);
}

void HeadOperand::reserve(bool isShared, const SizeExpr &atOnce) {
  SizeVector sizes = k->sizesOf(value);
  room = atOnce;
  if (!steps.empty() && !output)
    scratch = k->scratchOf(storageType(k->elementOf(value)), room * sizes[sizes.size() - 1 - tokens]);
  if (joined && steps.empty())
    joined->reserve(isShared, room);
  else if (joined)
    joined->reservePieces(isShared, room);
}

Value HeadOperand::placeOfOutput(const HeadGroup &group) {
  SizeVector sizes = k->sizesOf(value);
  size_t row = group.at.size();
  return k->mul(k->linearize(group.at, ArrayRef(sizes).take_front(row)), k->index(sizes[row] * sizes[row + 1]));
}

void HeadOperand::begin(const HeadGroup &group) {
  if (joined && steps.empty())
    joined->begin(group.at[0], group.at[1], group.isOwner);
  else if (joined)
    joined->beginPieces(group.at[0], group.at[1], group.isOwner);
  if (!output)
    return;
  SizeVector sizes = k->sizesOf(value);
  Value place = placeOfOutput(group);
  const SizeExpr &all = sizes[group.at.size()];
  if (!joined) {
    madeLines(group, {}, output, place);
  } else if (room == all) {
    joinedRows(group, {}, output, place);
  } else {
    Value count = k->index(all), step = k->index(room), width = k->index(sizes.back());
    k->loop(k->constant(0), count, step, [&](Value from) {
      joinedRows(group, {from, k->minimum(k->add(from, step), count)}, output, k->add(place, k->mul(from, width)));
    });
  }
}

/// Rows of a group that are put together: where they lie, or, behind steps, from `place` of the target on.
Matrix HeadOperand::joinedRows(const HeadGroup &group, RowRange range, Value target, Value place) {
  Value zero = k->constant(0), one = k->constant(1), first = zero;
  if (steps.empty()) {
    joined->write(group.at[0], group.at[1], group.isOwner, range);
    return joined->rows(group.at[0], group.at[1], group.isOwner, range);
  }
  SizeExpr width = k->sizesOf(shown.rows).back();
  Value apart = k->index(width);
  for (const JoinedHeads::Piece &piece : joined->pieces(group.at[0], group.at[1], group.isOwner, range)) {
    k->loop(zero, piece.count, one, [&](Value number) {
      Value from = k->add(piece.rows.offset, k->mul(number, piece.rows.rowStride));
      emitLine(*k, Line::at(target, k->add(place, k->mul(k->add(first, number), apart)), width), value, steps, source,
               Line::at(piece.rows.buffer, from, width));
    });
    first = k->add(first, piece.count);
  }
  return {target, place, apart, one};
}

/// What lies in memory, behind steps: made along the axis whose elements are neighbours.
Matrix HeadOperand::madeLines(const HeadGroup &group, RowRange range, Value target, Value place) {
  auto row = static_cast<unsigned>(group.at.size()), column = row + 1, ofTokens = row + tokens;
  SizeVector sizes = k->sizesOf(value);
  bool isTurned = target != output && !view.axes[column].stride.isConstant(1) && view.axes[row].stride.isConstant(1);
  unsigned line = isTurned ? row : column, other = isTurned ? column : row;
  Value from = headOffset(group.at), stride = k->strideOf(view.axes[other]), one = k->constant(1), some;
  if (range.to) {
    if (view.axes[ofTokens].present)
      from = k->add(from, k->mul(range.from, k->strideOf(view.axes[ofTokens])));
    some = k->sub(range.to, range.from);
  }
  auto countOf = [&](unsigned axis) { return some && axis == ofTokens ? some : Value(); };
  Value lines = countOf(other) ? some : k->index(sizes[other]);
  Value apart = k->index(countOf(line) ? room : sizes[line]);
  k->loop(k->constant(0), lines, one, [&](Value number) {
    Value start = k->add(from, k->mul(number, stride)), to = k->add(place, k->mul(number, apart));
    emitLine(*k, Line::at(target, to, sizes[line], countOf(line)), value, steps, source,
             Line::of(view, line, start, countOf(line)));
  });
  return isTurned ? Matrix{target, place, one, apart} : Matrix{target, place, apart, one};
}

Matrix HeadOperand::block(const HeadGroup &group, RowRange range) {
  auto row = static_cast<unsigned>(group.at.size());
  Value zero = k->constant(0), one = k->constant(1);
  auto behind = [&](Matrix all) {
    if (range.to)
      all.offset = k->add(all.offset, k->mul(range.from, tokens == 0 ? all.rowStride : all.columnStride));
    return all;
  };
  if (output)
    return behind({output, placeOfOutput(group), k->index(k->sizesOf(value).back()), one});
  if (joined) {
    Matrix rows = joinedRows(group, range, scratch, zero);
    if (shown.isTurned)
      std::swap(rows.rowStride, rows.columnStride);
    return rows;
  }
  if (!steps.empty())
    return madeLines(group, range, scratch, zero);
  return behind({view.buffer, headOffset(group.at), k->strideOf(view.axes[row]), k->strideOf(view.axes[row + 1])});
}

void HeadOperand::reserveQueries(int64_t rows, int64_t atOnce, bool readsStrided) {
  SizeExpr depth = k->sizesOf(value).back();
  bool isRead = !computed && steps.empty() && (readsStrided || view.axes.back().stride.isConstant(1));
  if (!isRead)
    made = k->scratchOf(storageType(k->elementOf(value)), depth * SizeExpr(rows));
  if (computed) {
    computed->reserve();
    computedRows = steps.empty() ? made : k->scratchOf(storageType(k->elementOf(source)), depth * SizeExpr(atOnce));
  }
}

void HeadOperand::makeQueries(ArrayRef<Value> head, Value first, Value count, Value number) {
  if (!made)
    return;
  SizeExpr length = k->sizesOf(value).back();
  Value zero = k->constant(0), one = k->constant(1), depth = k->index(length), place = k->mul(number, depth);
  auto row = static_cast<unsigned>(head.size());
  if (computed) {
    SmallVector<Value> at(head);
    at.push_back(first);
    computed->emit(at, count, computedRows, steps.empty() ? place : zero);
    if (steps.empty())
      return;
  }
  k->loop(zero, count, one, [&](Value index) {
    Line from = Line::at(computedRows, k->mul(index, depth), length);
    if (!computed) {
      Value offset = k->add(headOffset(head), k->mul(k->add(first, index), k->strideOf(view.axes[row])));
      from = Line::of(view, row + 1, offset);
    }
    emitLine(*k, Line::at(made, k->add(place, k->mul(index, depth)), length), value, steps, source, from);
  });
}

Matrix HeadOperand::queries(ArrayRef<Value> head, Value first, Value number) {
  Value depth = k->index(k->sizesOf(value).back());
  if (made)
    return {made, k->mul(number, depth), depth, k->constant(1)};
  auto row = static_cast<unsigned>(head.size());
  Value rowStride = k->strideOf(view.axes[row]);
  return {view.buffer, k->add(headOffset(head), k->mul(first, rowStride)), rowStride, k->strideOf(view.axes[row + 1])};
}

} // namespace deepstride
