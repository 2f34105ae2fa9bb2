// What the forms of the attention kernel do to a row of scores: the steps that mask it, its softmax, and which columns
// its window leaves out. Scores that a window hides are not computed, columns without a weight are not summed; whether
// they have one is told by the keys so far.
#include "codegen/lower/AttentionRows.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace deepstride {

LogicalResult AttentionRows::findMasks(Operation *op, unsigned firstMask) {
  for (Value value : op->getOperands().drop_front(firstMask)) // masks, positions and what is random
    if (!isa<BlockArgument>(value))
      return op->emitOpError("expects masks and positions in memory, found what its kernel computes");
  if (dropout && dropout->random.empty())
    return op->emitOpError("expects what its dropout is drawn by, as 'ds-build-training-step' gives it");
  auto maskOf = [&](Value value) {
    return value ? k.broadcastView(k.bufferOf(value), k.sizesOf(value), {q[0], q[1], q[2], key[2]}) : View();
  };
  for (const ds::ScoreStep &step : steps)
    masks.push_back(maskOf(step.mask));
  positions = maskOf(bounds.positions);
  return success();
}

Value AttentionRows::cells(int64_t count, Type type) {
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(&k.function.front());
  return memref::AllocaOp::create(k.b, k.loc, MemRefType::get({count}, type));
}

Value AttentionRows::repeatOf() {
  Value one = k.constant(1), groups = arith::MaxUIOp::create(k.b, k.loc, k.index(key[1]), one);
  return arith::MaxUIOp::create(k.b, k.loc, k.divide(k.index(q[1]), groups), one);
}

Matrix AttentionRows::headOf(const View &view, Value batch, Value head) {
  return {view.buffer, k.offsetAt(view, {0, 1}, {batch, head}), k.index(view.axes[2].stride),
          k.index(view.axes[3].stride)};
}

// Without keys nothing is summed: the result is 0 then, as a product over nothing is, and not 0 / 0.
Value AttentionRows::divisorOf(Value sum) {
  Value none = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, k.index(key[2]), k.constant(0));
  return arith::SelectOp::create(k.b, k.loc, none, constant(k.b, 1), sum);
}

std::optional<size_t> AttentionRows::replacingStep() const {
  for (size_t i = steps.size(); i-- > 0;)
    if (steps[i].kind == ds::ScoreStepKind::window)
      return i;
  return std::nullopt;
}

/// The columns that a row, [batch, head, row], sees.
Segment AttentionRows::windowOf(ArrayRef<Value> row) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Value zero = k.constant(0), columns = k.index(key[2]);
  auto clamp = [&](Value x, Value low, Value high) -> Value {
    return arith::MinSIOp::create(b, loc, arith::MaxSIOp::create(b, loc, x, low), high);
  };
  // Positions and elements of inputs are data, and bounds must not wrap around; sizes are far below this.
  constexpr int64_t farthest = int64_t(1) << 60;
  auto bounded = [&](Value data) { return clamp(data, k.constant(-farthest), k.constant(farthest)); };
  Value place;
  if (positions.buffer) {
    Value given = k.load(positions.buffer, k.offsetAt(positions, {0, 1, 2}, row), b.getI64Type());
    place = bounded(arith::IndexCastOp::create(b, loc, b.getIndexType(), given));
  } else {
    place = k.add(row[2], bounded(k.index(bounds.past)));
  }
  Value first = bounds.left ? clamp(k.sub(place, k.constant(*bounds.left)), zero, columns) : zero;
  Value end = bounds.right ? clamp(k.add(place, k.constant(*bounds.right + 1)), first, columns) : columns;
  return {first, end, true};
}

SmallVector<Segment> AttentionRows::segmentsOf(const Segment &window, const KeyBlock &keys) {
  SmallVector<Segment> segments;
  Value begin = within(keys, window.begin), end = within(keys, window.end);
  if (bounds.left)
    segments.push_back({keys.begin, begin, false});
  segments.push_back({begin, end, true});
  if (bounds.right)
    segments.push_back({end, keys.end, false});
  return segments;
}

/// steps(cap(scale * score)) at a place inside or outside the window; `masks` has one value for each step, or null.
Value AttentionRows::adjust(OpBuilder &b, Value score, ArrayRef<Value> masks, bool inside) {
  Location loc = k.loc;
  size_t first = 0;
  if (auto replaced = inside ? std::nullopt : replacingStep()) {
    score = constant(b, steps[*replaced].low);
    first = *replaced + 1;
  } else {
    score = arith::MulFOp::create(b, loc, score, constant(b, scale));
    if (softcap) {
      Value cap = constant(b, *softcap);
      Value bounded = math::TanhOp::create(b, loc, arith::DivFOp::create(b, loc, score, cap));
      score = arith::MulFOp::create(b, loc, bounded, cap);
    }
  }
  auto add = [&](Value other) { return arith::AddFOp::create(b, loc, score, other).getResult(); };
  for (size_t i = first; i < steps.size(); ++i) {
    Value low = constant(b, steps[i].low), mask = masks[i];
    switch (steps[i].kind) {
    case ds::ScoreStepKind::add: score = add(mask); break;
    case ds::ScoreStepKind::multiply: score = arith::MulFOp::create(b, loc, score, mask); break;
    case ds::ScoreStepKind::keep: score = arith::SelectOp::create(b, loc, mask, score, low); break;
    case ds::ScoreStepKind::hide: score = arith::SelectOp::create(b, loc, mask, low, score); break;
    case ds::ScoreStepKind::keep_add: score = arith::SelectOp::create(b, loc, mask, score, add(low)); break;
    case ds::ScoreStepKind::hide_add: score = arith::SelectOp::create(b, loc, mask, add(low), score); break;
    case ds::ScoreStepKind::window: break; // outside it was the first
    case ds::ScoreStepKind::window_add: score = inside ? score : add(low); break;
    case ds::ScoreStepKind::window_mask: score = add(inside ? mask : low); break;
    }
  }
  return score;
}

/// With `guard`, 0 where the row's sum is not a number.
Value AttentionRows::orZero(Value result, Value sum) {
  if (!guard)
    return result;
  Value isNan = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::UNO, sum, sum);
  Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(result.getType()));
  return arith::SelectOp::create(k.b, k.loc, isNan, zero, result);
}

Value AttentionRows::plainSum(Value count, llvm::function_ref<Value(Value)> term) {
  Value sum = k.cell(computeType(element));
  storeCell(constant(k.b, 0), sum);
  k.loop(k.constant(0), count, k.constant(1),
         [&](Value i) { storeCell(arith::AddFOp::create(k.b, k.loc, loadCell(sum), term(i)), sum); });
  return loadCell(sum);
}

// Masks may be f32 beside a narrower query, whose scores are computed in f32.
SmallVector<Value> AttentionRows::masksAt(ArrayRef<Value> row, Value column) {
  SmallVector<Value> given;
  for (auto [step, mask] : llvm::zip_equal(steps, masks))
    given.push_back(mask.buffer ? k.load(mask.buffer, k.offsetAt(mask, {0, 1, 2, 3}, {row[0], row[1], row[2], column}),
                                         k.elementOf(step.mask))
                                : Value());
  return given;
}

RunningSoftmax AttentionRows::plainSoftmax(ArrayRef<Value> row, Value scores, const KeyBlock &keys,
                                           const RunningSoftmax &before, llvm::function_ref<Value(Value)> dotOf) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Value one = k.constant(1), greatest = k.cell(computeType(element)), sum = k.cell(computeType(element));
  for (const Segment &segment : segmentsOf(windowOf(row), keys))
    k.loop(segment.begin, segment.end, one, [&](Value column) {
      Value dot = segment.inside || !replacingStep() ? dotOf(column) : Value();
      Value score = adjust(b, dot, masksAt(row, column), segment.inside);
      memref::StoreOp::create(b, loc, score, scores, k.sub(column, keys.begin));
    });
  Value count = k.sub(keys.end, keys.begin);
  storeCell(before.greatest, greatest);
  k.loop(k.constant(0), count, one, [&](Value place) {
    Value score = memref::LoadOp::create(b, loc, scores, place);
    storeCell(arith::MaximumFOp::create(b, loc, loadCell(greatest), score), greatest);
  });
  Value most = loadCell(greatest), shift = shiftOf(most, keys), factor = factorOf(before.greatest, shift, keys);
  storeCell(keys.isOnly ? before.sum : arith::MulFOp::create(b, loc, before.sum, factor), sum);
  k.loop(k.constant(0), count, one, [&](Value place) {
    Value score = memref::LoadOp::create(b, loc, scores, place);
    Value e = math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, score, shift));
    memref::StoreOp::create(b, loc, e, scores, place);
    storeCell(arith::AddFOp::create(b, loc, loadCell(sum), e), sum);
  });
  return {most, loadCell(sum), factor};
}

/// The last axis of a view over one segment, or the element that is broadcast over it.
Value AttentionRows::lineOf(const View &view, Value base, const Segment &segment) {
  const Axis &axis = view.axes.back();
  auto end = getConstantIntValue(segment.end);
  bool isWhole = getConstantIntValue(segment.begin) == 0 && end && axis.size.isConstant(*end);
  if (isWhole || !axis.present)
    return k.memrefOf(View{view.buffer, 0, {axis}}, base, {0});
  return segmentOf(view, base, segment);
}

Value AttentionRows::segmentOf(const View &view, Value base, const Segment &segment) {
  const Axis &axis = view.axes.back();
  Value stride = k.strideOf(axis);
  auto fixed = axis.guard ? std::nullopt : axis.stride.constant();
  OpFoldResult step = fixed ? OpFoldResult(k.b.getIndexAttr(*fixed)) : OpFoldResult(stride);
  auto layout = StridedLayoutAttr::get(k.b.getContext(), ShapedType::kDynamic, fixed.value_or(ShapedType::kDynamic));
  auto type = MemRefType::get(ShapedType::kDynamic, cast<MemRefType>(view.buffer.getType()).getElementType(), layout);
  Value offset = k.add(base, k.mul(segment.begin, stride)), count = k.sub(segment.end, segment.begin);
  return memref::ReinterpretCastOp::create(k.b, k.loc, type, view.buffer, OpFoldResult(offset),
                                           ArrayRef<OpFoldResult>{count}, ArrayRef<OpFoldResult>{step});
}

/// Scores of a segment, adjusted in place.
void AttentionRows::adjustRow(const View &scores, Value offset, ArrayRef<Value> row, const Segment &segment) {
  OpBuilder &b = k.b;
  AffineMap all = AffineMap::getMultiDimIdentityMap(1, b.getContext()), none = AffineMap::get(1, 0, b.getContext());
  Value line = lineOf(scores, offset, segment);
  SmallVector<Value> inputs = {line};
  SmallVector<AffineMap> maps = {all};
  for (const View &mask : masks) {
    if (!mask.buffer)
      continue;
    inputs.push_back(lineOf(mask, k.offsetAt(mask, {0, 1, 2}, row), segment));
    maps.push_back(mask.axes[3].present ? all : none);
  }
  maps.push_back(all);
  linalg::GenericOp::create(b, k.loc, inputs, ValueRange{line}, maps, {utils::IteratorType::parallel},
                            [&](OpBuilder &body, Location loc, ValueRange v) {
                              SmallVector<Value> given;
                              size_t next = 1;
                              for (auto [step, mask] : llvm::zip_equal(steps, masks))
                                given.push_back(mask.buffer ? fromStorage(body, loc, v[next++], k.elementOf(step.mask))
                                                            : Value());
                              linalg::YieldOp::create(body, loc, adjust(body, v[0], given, segment.inside));
                            });
}

/// The reduction of a segment, from the neutral element or `start` on.
Value AttentionRows::reduceRow(const View &scores, Value offset, const Segment &segment, ds::ReduceKind kind,
                               Value start) {
  OpBuilder &b = k.b;
  AffineMap all = AffineMap::getMultiDimIdentityMap(1, b.getContext()), none = AffineMap::get(1, 0, b.getContext());
  Value cell = k.cell(computeType(element));
  storeCell(start ? start : neutralElement(b, k.loc, kind, element), cell);
  linalg::GenericOp::create(b, k.loc, ValueRange{lineOf(scores, offset, segment)}, ValueRange{cell}, {all, none},
                            {utils::IteratorType::reduction}, [&](OpBuilder &body, Location loc, ValueRange v) {
                              linalg::YieldOp::create(body, loc, emitCombine(body, loc, kind, v[1], v[0], element));
                            });
  return loadCell(cell);
}

/// exp(score - greatest) in place.
void AttentionRows::exponentials(const View &scores, Value offset, const Segment &segment, Value greatest) {
  AffineMap all = AffineMap::getMultiDimIdentityMap(1, k.b.getContext());
  Value line = lineOf(scores, offset, segment);
  linalg::GenericOp::create(k.b, k.loc, ValueRange{line}, ValueRange{line}, {all, all}, {utils::IteratorType::parallel},
                            [&](OpBuilder &body, Location loc, ValueRange v) {
                              Value difference = arith::SubFOp::create(body, loc, v[0], greatest);
                              linalg::YieldOp::create(body, loc, emitWeight(body, loc, difference));
                            });
}

void AttentionRows::fillRow(Value scores, Value offset, Value from, Value to, Value number) {
  k.loop(from, to, k.constant(1),
         [&](Value column) { memref::StoreOp::create(k.b, k.loc, number, scores, k.add(offset, column)); });
}

// The adjusted scores; then exponentials of the differences to the greatest so far, and their sum.
RunningSoftmax AttentionRows::softmaxRow(const View &scores, Value offset, ArrayRef<Value> row, const KeyBlock &keys,
                                         const RunningSoftmax &before) {
  Segment all = keys.columns();
  adjustRow(scores, offset, row, all);
  Value greatest = reduceRow(scores, offset, all, ds::ReduceKind::max, before.greatest);
  Value shift = shiftOf(greatest, keys), factor = factorOf(before.greatest, shift, keys);
  exponentials(scores, offset, all, shift);
  Value start = keys.isOnly ? before.sum : arith::MulFOp::create(k.b, k.loc, before.sum, factor).getResult();
  return {greatest, reduceRow(scores, offset, all, ds::ReduceKind::sum, start), factor};
}

/// The same for row `number` of a block whose rows see windows. What lies beside the block's columns is left unwritten
/// where it has no weight.
RunningSoftmax AttentionRows::softmaxWindow(const View &scores, Value offset, ArrayRef<Value> row, Value number,
                                            const BlockWindow &block, const KeyBlock &keys,
                                            const RunningSoftmax &before) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  auto cell = [&](Value cells) { return memref::LoadOp::create(b, loc, cells, number).getResult(); };
  auto choose = [&](Value condition, Value yes, Value no) -> Value {
    return condition ? arith::SelectOp::create(b, loc, condition, yes, no) : yes;
  };
  auto times = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, loc, x, y); };
  Segment window{cell(block.firsts), cell(block.ends), true};
  Segment seen{within(keys, window.begin), within(keys, window.end), true};
  Value begin = loadCell(block.begin), end = loadCell(block.end), zero = constant(b, 0);
  auto notes = [&](Value weight) { // not equal: a NaN is a weight, too
    Value has = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, weight, zero);
    storeCell(arith::OrIOp::create(b, loc, loadCell(block.spills), has), block.spills);
  };
  if (!hidesEqually()) {
    for (const Segment &segment : segmentsOf(window, keys))
      adjustRow(scores, offset, row, segment);
    Value greatest = reduceRow(scores, offset, keys.columns(), ds::ReduceKind::max, before.greatest);
    Value shift = shiftOf(greatest, keys), factor = factorOf(before.greatest, shift, keys);
    exponentials(scores, offset, keys.columns(), shift);
    Value sum = reduceRow(scores, offset, {keys.begin, begin, false}, ds::ReduceKind::sum);
    sum = reduceRow(scores, offset, {end, keys.end, false}, ds::ReduceKind::sum, sum);
    notes(sum);
    if (!keys.isOnly)
      sum = arith::AddFOp::create(b, loc, sum, times(before.sum, factor));
    return {greatest, reduceRow(scores, offset, {begin, end, true}, ds::ReduceKind::sum, sum), factor};
  }
  // What is hidden counts before the first block, all of it.
  adjustRow(scores, offset, row, seen);
  Value hidden = k.sub(k.index(key[2]), k.sub(window.end, window.begin));
  Value hides = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, hidden, k.constant(0));
  Value low = constant(b, steps.back().low), first = choose(hides, low, before.greatest);
  first = choose(keys.isFirst, first, before.greatest);
  Value greatest = reduceRow(scores, offset, seen, ds::ReduceKind::max, first);
  Value shift = shiftOf(greatest, keys), factor = factorOf(first, shift, keys);
  exponentials(scores, offset, seen, shift);
  Value weight = choose(hides, emitWeight(b, loc, arith::SubFOp::create(b, loc, low, shift)), zero);
  Value count =
      arith::SIToFPOp::create(b, loc, computeType(element), arith::IndexCastOp::create(b, loc, b.getI64Type(), hidden));
  Value start = times(weight, count);
  if (!keys.isOnly)
    start = choose(keys.isFirst, start, times(before.sum, factor));
  Value sum = reduceRow(scores, offset, seen, ds::ReduceKind::sum, start);
  fillRow(scores.buffer, offset, begin, seen.begin, weight);
  fillRow(scores.buffer, offset, seen.end, end, weight);
  memref::StoreOp::create(b, loc, weight, block.hidden, number);
  notes(weight);
  return {greatest, sum, factor};
}

/// The windows of a block of rows of one head, [batch, head].
BlockWindow AttentionRows::emitWindows(int64_t rowBlock, ArrayRef<Value> head, Value firstRow, Value count) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  BlockWindow block{
      cells(rowBlock, b.getIndexType()), cells(rowBlock, b.getIndexType()), cells(rowBlock, computeType(element)),
      k.cell(b.getIndexType()),          k.cell(b.getIndexType()),          k.cell(b.getI1Type())};
  storeCell(k.index(key[2]), block.begin);
  storeCell(k.constant(0), block.end);
  storeCell(arith::ConstantOp::create(b, loc, b.getBoolAttr(false)), block.spills);
  k.loop(k.constant(0), count, k.constant(1), [&](Value number) {
    Segment window = windowOf({head[0], head[1], k.add(firstRow, number)});
    memref::StoreOp::create(b, loc, window.begin, block.firsts, number);
    memref::StoreOp::create(b, loc, window.end, block.ends, number);
    storeCell(arith::MinSIOp::create(b, loc, loadCell(block.begin), window.begin), block.begin);
    storeCell(arith::MaxSIOp::create(b, loc, loadCell(block.end), window.end), block.end);
  });
  if (micro->interleave > 1) { // values are packed in groups
    Value size = k.constant(micro->interleave);
    storeCell(k.mul(k.divide(loadCell(block.begin), size), size), block.begin);
  }
  return block;
}

/// Where a row gives weight to columns beside the block's, the block takes in all columns of the keys.
void AttentionRows::spread(const View &scores, Value scoresAt, Value stride, Value count, const BlockWindow &block,
                           const KeyBlock &keys) {
  OpBuilder &b = k.b;
  auto branch = scf::IfOp::create(b, k.loc, loadCell(block.spills), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  if (hidesEqually())
    k.loop(k.constant(0), count, k.constant(1), [&](Value number) {
      Value offset = k.sub(k.add(scoresAt, k.mul(number, stride)), keys.begin);
      Value weight = memref::LoadOp::create(b, k.loc, block.hidden, number);
      fillRow(scores.buffer, offset, keys.begin, loadCell(block.begin), weight);
      fillRow(scores.buffer, offset, loadCell(block.end), keys.end, weight);
    });
  storeCell(keys.begin, block.begin);
  storeCell(keys.end, block.end);
}

} // namespace deepstride
