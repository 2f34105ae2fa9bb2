// Attention in parts, a few rows and a block of keys at a time.
//
// Scratch has room for a block of some thousand keys. A weight becomes a code behind the sum of its whole row only:
// where there are more keys, a few hundred rows meet all of them three times, for the greatest score, for the sum of
// exponentials and for the product with the values, and scores are computed anew each time.
#include "codegen/lower/Blocks.h"
#include "codegen/lower/QuantizedAttentionLowering.h"
#include "codegen/lower/Rows.h"

using namespace mlir;

namespace deepstride {

/// Keys, or values, of a block have about so many bytes of panels. Blocks are long, as what goes beyond one is computed
/// three times, and of as many keys as some sums of a softmax have.
static constexpr int64_t panelBytes = 1 << 20, mostKeys = 4 * mostPerBlock;
/// So many scores are in scratch at a time, or those of the rows of one tile.
static constexpr int64_t scoresAtOnce = 1 << 16;
/// About so many rows meet the keys that are packed.
static constexpr int64_t rowsPerSweep = 512;

/// Columns as panels of the product that reads them.
void QuantizedAttention::pack(const MicroKernel &micro, ds::MatmulOp op, const Matrix &matrix, Value depth,
                              Value columns, Value panels) {
  Matrix source = matrix;
  if (op.getTranspose()[1])
    std::swap(source.rowStride, source.columnStride);
  int64_t width = ds::scheduleOf(op).getColumns();
  k.loop(k.constant(0), k.ceilDiv(columns, width), k.constant(1), [&](Value number) {
    emitPackPanel(k, micro, source, k.elementOf(op.getRhs()), depth, k.mul(number, k.constant(width)), columns, panels,
                  k.mul(number, panelElements(k, micro, depth, width)), width);
  });
}

/// Rows of the product, as long as whole panels. The sink and what sums begin with take a row and a column.
void QuantizedAttention::multiply(const MicroKernel &micro, ds::MatmulOp op, const Matrix &rows, Value count,
                                  Value depth, Value columns, Value panels,
                                  llvm::function_ref<void(Value, Value, Value)> sink,
                                  llvm::function_ref<Value(Value, Value)> start) {
  int64_t width = ds::scheduleOf(op).getColumns(), lanes = micro.lanes();
  k.loop(k.constant(0), k.ceilDiv(columns, width), k.constant(1), [&](Value number) {
    Value first = k.mul(number, k.constant(width));
    auto columnOf = [&](int64_t vector) { return k.add(first, k.constant(vector * lanes)); };
    auto begin = [&](Value row, int64_t vector) { return start(row, columnOf(vector)); };
    Panel panel{panels, k.mul(number, panelElements(k, micro, depth, width)), width / lanes, {}};
    emitPanelProduct(
        k, micro, rows, count, depth, panel, /*columns=*/{}, ds::scheduleOf(op).getRows(),
        [&](Value row, int64_t vector, Value tile, Value) { sink(row, columnOf(vector), tile); }, /*areWhole=*/false,
        start ? TileStart(begin) : nullptr);
  });
}

void QuantizedAttention::reserve() {
  auto fixedKeys = keyCount.constant(), fixedRows = result[batch.size()].constant();
  int64_t widest = 1; // bytes of a key, or of its value
  for (auto [micro, size] : {std::pair(scoring.get(), query.back()), std::pair(weighting.get(), result.back())})
    widest = std::max(widest, size.constant().value_or(1) * storageBytes(micro->panel));
  int64_t block = std::clamp(panelBytes / widest / mostPerBlock * mostPerBlock, mostPerBlock, mostKeys);
  atOnce = fixedKeys && *fixedKeys <= block ? keyCount : SizeExpr(block);
  int64_t tile = ds::scheduleOf(ops.scores).getRows(), mostRows = 4 * tile, underSweep = rowsPerSweep;
  if (fixedRows) {
    mostRows = std::clamp<int64_t>(*fixedRows, 1, mostRows);
    underSweep = std::clamp<int64_t>(repeat * llvm::divideCeil(*fixedRows, mostRows) * mostRows, mostRows, underSweep);
  }
  int64_t keyWidth = ds::scheduleOf(ops.scores).getColumns(), width = ds::scheduleOf(ops.weighted).getColumns();
  // Rows of few keys lie near each other.
  Value keysAtOnce = k.minimum(k.index(keyCount), k.index(atOnce));
  scoreStride = k.add(keysAtOnce, k.constant(keyWidth));
  Value share = k.divide(k.constant(scoresAtOnce), k.maximum(keysAtOnce, k.constant(1)));
  tile = std::min(tile, mostRows);
  rowsAtOnce = k.minimum(k.maximum(share, k.constant(tile)), k.constant(mostRows));
  SizeExpr scores = atOnce * SizeExpr(tile) + SizeExpr(scoresAtOnce + mostRows * keyWidth);
  if (auto fixed = getConstantIntValue(rowsAtOnce); fixed || mostRows == tile)
    scores = (atOnce + SizeExpr(keyWidth)) * SizeExpr(fixed.value_or(tile));
  if (isOnly())
    underSweep = mostRows;
  blocks = k.divide(k.constant(underSweep), rowsAtOnce);

  keyPanels = panelsFor(*scoring, query.back(), atOnce, keyWidth);
  valuePanels = panelsFor(*weighting, atOnce, result.back(), width);
  keys->reserve(/*isShared=*/repeat > 1, atOnce);
  values->reserve(/*isShared=*/repeat > 1, atOnce);
  queries->reserveQueries(underSweep, mostRows, scoring->readsStrided());
  sums = scratchFor(ops.scores.getResult(), scores);
  weights = scratchFor(ops.softmax.getResult(), scores);
  Value multiplied = ops.weighted.getLhs();
  left = storageType(k.elementOf(multiplied)) == storageType(k.elementOf(ops.softmax.getResult()))
             ? weights
             : scratchFor(multiplied, scores);
  SizeExpr productSize = result.back() + SizeExpr(width), rows(underSweep);
  products = scratchFor(ops.weighted.getResult(), productSize * SizeExpr(mostRows));
  productStride = k.index(productSize);
  if (isOnly())
    return;
  greatest = scratchFor(ops.softmax.getResult(), rows);
  totals = k.scratchOf(k.b.getF64Type(), rows);
  begun = k.scratchOf(weighting->accumulator.getElementType(), productSize * rows);
  packedKeys = k.cell(k.b.getIndexType());
  packedValues = k.cell(k.b.getIndexType());
}

void QuantizedAttention::emit() {
  SizeExpr scores = product(batch) * result[batch.size()] * keyCount;
  k.setFlops(scores * (query.back() + result.back()) * SizeExpr(2) + scores * SizeExpr(5));
  k.setGrid(product(batch), 1);
  reserve();
  SizeVector groups = batch;
  if (repeat > 1)
    groups[1] = k.sizesOf(keys->rows())[1];
  Value shared = repeat > 1 ? k.constant(repeat) : Value();
  forEachHeadGroup(k, groups, shared, [&](const HeadGroup &group) {
    keys->begin(group);
    values->begin(group);
    emitSweeps(group, shared);
  });
}

/// All rows of the thread's heads of a group.
void QuantizedAttention::emitSweeps(const HeadGroup &group, Value shared) {
  Value zero = k.constant(0), one = k.constant(1), rowCount = k.index(result[batch.size()]);
  Value perHead = k.divide(k.add(rowCount, k.sub(rowsAtOnce, one)), rowsAtOnce);
  Value heads = shared ? k.sub(group.to, group.from) : one, all = k.mul(heads, perHead);
  auto emitBlocks = [&](Value from, Value to, llvm::function_ref<void(const RowBlock &)> body) {
    k.loop(from, to, one, [&](Value number) {
      SmallVector<Value> head(group.at);
      if (shared)
        head[1] = k.add(k.mul(group.at[1], shared), k.add(group.from, k.divide(number, perHead)));
      Value first = k.mul(shared ? k.remainder(number, perHead) : number, rowsAtOnce);
      body({head, first, k.minimum(rowsAtOnce, k.sub(rowCount, first)), k.mul(k.sub(number, from), rowsAtOnce)});
    });
  };
  auto makeQueries = [&](const RowBlock &rows) {
    queries->makeQueries(rows.head, rows.first, rows.count, rows.number);
  };
  if (isOnly()) {
    KeyBlock block{{}, k.index(keyCount)};
    emitKeys(group, block);
    k.loop(zero, all, one, [&](Value number) {
      emitBlocks(number, k.add(number, one), [&](const RowBlock &rows) {
        makeQueries(rows);
        emitRows(rows, block);
      });
    });
    return;
  }
  Value keyEnd = k.index(keyCount), size = k.index(atOnce);
  Value isAlone = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sle, keyEnd, size);
  Value last = arith::SelectOp::create(k.b, k.loc, isAlone, zero, k.constant(2));
  for (Value cell : {packedKeys, packedValues})
    memref::StoreOp::create(k.b, k.loc, k.constant(-1), cell);
  k.loop(zero, all, blocks, [&](Value from) {
    Value to = k.minimum(k.add(from, blocks), all);
    if (queries->makesQueries())
      emitBlocks(from, to, makeQueries);
    k.loop(zero, k.add(last, one), one, [&](Value round) {
      Value isLastRound = equals(round, last), isFirstRound = equals(round, zero);
      k.loop(zero, k.maximum(keyEnd, one), size, [&](Value begin) {
        Value end = k.minimum(k.add(begin, size), keyEnd);
        KeyBlock block{{begin, end}, k.sub(end, begin), isFirstRound};
        block.addsUp = arith::OrIOp::create(k.b, k.loc, isAlone, equals(round, one));
        block.weighs = isLastRound;
        block.isLast = both(isLastRound, equals(end, keyEnd));
        emitKeys(group, block);
        emitBlocks(from, to, [&](const RowBlock &rows) {
          k.when(both(isFirstRound, equals(begin, zero)), [&] { emitStart(rows); });
          emitRows(rows, block);
        });
      });
    });
  });
}

/// Packs the block's keys and values, unless that is done: values once rows are multiplied with them.
void QuantizedAttention::emitKeys(const HeadGroup &group, const KeyBlock &block) {
  auto unlessPacked = [&](Value condition, Value cell, llvm::function_ref<void()> body) {
    if (!cell)
      return body();
    Value begin = block.range.from, isOther = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ne,
                                                                    memref::LoadOp::create(k.b, k.loc, cell), begin);
    k.when(condition ? both(condition, isOther) : isOther, [&] {
      memref::StoreOp::create(k.b, k.loc, begin, cell);
      body();
    });
  };
  unlessPacked({}, packedKeys, [&] {
    pack(*scoring, ops.scores, keys->block(group, block.range), k.index(query.back()), block.count, keyPanels);
  });
  unlessPacked(block.weighs, packedValues, [&] {
    pack(*weighting, ops.weighted, values->block(group, block.range), block.count, k.index(result.back()), valuePanels);
  });
}

/// Before any key.
void QuantizedAttention::emitStart(const RowBlock &rows) {
  Value zero = k.constant(0), one = k.constant(1), lanes = k.constant(weighting->lanes());
  Type element = k.elementOf(ops.softmax.getResult()), wide = k.b.getF64Type();
  Value least = neutralElement(k.b, k.loc, ds::ReduceKind::max, element);
  Value nothing = scalarConstant(k.b, k.loc, wide, 0.0);
  Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(weighting->accumulator));
  k.loop(rows.number, k.add(rows.number, rows.count), one, [&](Value row) {
    k.store(least, greatest, row, element);
    k.store(nothing, totals, row, wide);
    k.loop(zero, k.index(result.back()), lanes,
           [&](Value column) { storeLanes(k, none, begun, k.add(k.mul(row, productStride), column), {}); });
  });
}

/// A few rows of a head and a block of keys: from their scores to what is stored.
void QuantizedAttention::emitRows(const RowBlock &rows, const KeyBlock &keys) {
  multiply(*scoring, ops.scores, queries->queries(rows.head, rows.first, rows.number), rows.count,
           k.index(query.back()), keys.count, keyPanels, [&](Value row, Value column, Value tile) {
             storeLanes(k, toStorage(k.b, k.loc, tile, k.elementOf(ops.scores.getResult())), sums,
                        k.add(k.mul(row, scoreStride), column), {});
           });
  k.loop(k.constant(0), rows.count, k.constant(1), [&](Value row) {
    Line line = Line::at(weights, k.mul(row, scoreStride), keyCount, isOnly() ? Value() : keys.count);
    emitScores(rows, keys, row, line);
    if (!isOnly())
      return emitWeights(keys, k.add(rows.number, row), line);
    RowSpace space(k, {SizeExpr(1), keyCount}, {1});
    View whole{weights, 0, {Axis{1, 1, true, std::nullopt}, line.view.axes[0]}};
    emitSoftmaxRow(k, space, ops.softmax, whole, whole, line.start); // a row is as far from the first as it begins
    emitCodes(line);
  });
  k.when(keys.weighs, [&] { emitProducts(rows, keys); });
}

/// What a softmax takes of a row's products.
void QuantizedAttention::emitScores(const RowBlock &rows, const KeyBlock &keys, Value row, const Line &target) {
  SmallVector<Value> at(rows.head);
  at.push_back(k.add(rows.first, row));
  SizeVector shape = k.sizesOf(ops.scores.getResult());
  auto axis = static_cast<unsigned>(at.size());
  SmallVector<Line> lines;
  for (Value operand : ofScores.operands) {
    if (operand == ops.scores.getResult()) {
      lines.push_back(Line::at(sums, target.start, keyCount, target.count));
      continue;
    }
    View view = k.broadcastView(k.bufferOf(operand), k.sizesOf(operand), shape);
    Value start = headOffset(view, at);
    if (keys.range.to && view.axes[axis].present)
      start = k.add(start, k.mul(keys.range.from, k.strideOf(view.axes[axis])));
    lines.push_back(Line::of(view, axis, start, target.count));
  }
  emitLine(k, target, ops.softmax.getInput(), ofScores.ops, ofScores.operands.getArrayRef(), lines);
}

/// What is multiplied of a row's weights.
void QuantizedAttention::emitCodes(const Line &weights) {
  if (!ofWeights.ops.empty())
    emitLine(k, Line::at(left, weights.start, keyCount, weights.count), ops.weighted.getLhs(), ofWeights.ops,
             ops.softmax.getResult(), weights);
}

/// The softmax of a row whose scores are made block by block: as of a row in one piece, whose sum is one of sums of as
/// many elements.
void QuantizedAttention::emitWeights(const KeyBlock &keys, Value row, const Line &line) {
  Type element = k.elementOf(ops.softmax.getResult()), wide = k.b.getF64Type();
  RowSpace space(k, {SizeExpr(1), atOnce}, {1}, keys.count);
  View scores{weights, 0, {Axis{1, 1, true, std::nullopt}, Axis{atOnce, 1, true, std::nullopt}}};
  auto reduce = [&](RowSpace &of, ds::ReduceKind kind, Value start) {
    return of.reduce(kind, element, {&scores}, start, [](OpBuilder &, ValueRange v) { return v[0]; });
  };
  auto change = [&](llvm::function_ref<Value(OpBuilder &, Value)> body) {
    space.map(scores, element, {&scores}, line.start, [&](OpBuilder &b, ValueRange v) { return body(b, v[0]); });
  };
  k.when(keys.findsGreatest, [&] {
    Value most = reduce(space, ds::ReduceKind::max, line.start), before = k.load(greatest, row, element);
    k.store(emitCombine(k.b, k.loc, ds::ReduceKind::max, before, most, element), greatest, row, element);
  });
  k.when(arith::OrIOp::create(k.b, k.loc, keys.addsUp, keys.weighs), [&] {
    Value most = k.load(greatest, row, element);
    change([&](OpBuilder &b, Value x) { return emitWeight(b, k.loc, arith::SubFOp::create(b, k.loc, x, most)); });
    k.when(keys.addsUp, [&] {
      Value some = k.constant(mostPerBlock);
      k.loop(k.constant(0), keys.count, some, [&](Value from) {
        RowSpace part(k, {SizeExpr(1), SizeExpr(mostPerBlock)}, {1}, k.minimum(some, k.sub(keys.count, from)));
        Value sum = arith::ExtFOp::create(k.b, k.loc, wide, reduce(part, ds::ReduceKind::sum, k.add(line.start, from)));
        k.store(arith::AddFOp::create(k.b, k.loc, k.load(totals, row, wide), sum), totals, row, wide);
      });
    });
    k.when(keys.weighs, [&] {
      Value total = arith::TruncFOp::create(k.b, k.loc, element, k.load(totals, row, wide));
      Value inverse = arith::DivFOp::create(k.b, k.loc, scalarConstant(k.b, k.loc, element, 1.0), total);
      change([&](OpBuilder &b, Value x) { return arith::MulFOp::create(b, k.loc, x, inverse).getResult(); });
      emitCodes(line);
    });
  });
}

/// Adds up what the block's values come to, and stores the result behind the last block.
void QuantizedAttention::emitProducts(const RowBlock &rows, const KeyBlock &keys) {
  Value zero = k.constant(0), one = k.constant(1);
  Type element = k.elementOf(ops.weighted.getResult());
  bool areSums = begun && storageType(element) == cast<MemRefType>(begun.getType()).getElementType();
  auto begunAt = [&](Value row, Value column) { return k.add(k.mul(k.add(rows.number, row), productStride), column); };
  auto store = [&](Value row, Value column, Value tile) {
    if (begun)
      storeLanes(k, tile, begun, begunAt(row, column), {});
    if (!areSums)
      storeLanes(k, toStorage(k.b, k.loc, tile, element), products, k.add(k.mul(row, productStride), column), {});
  };
  auto begin = [&](Value row, Value column) {
    return loadLanes(k, weighting->accumulator, begun, begunAt(row, column), {});
  };
  llvm::function_ref<Value(Value, Value)> start = nullptr;
  if (begun)
    start = begin;
  multiply(*weighting, ops.weighted, {left, zero, scoreStride, one}, rows.count, keys.count, k.index(result.back()),
           valuePanels, store, start);
  k.when(keys.isLast, [&] {
    k.loop(zero, rows.count, one, [&](Value row) {
      SmallVector<Value> at(rows.head);
      at.push_back(k.add(rows.first, row));
      Line to = Line::of(target, static_cast<unsigned>(at.size()), headOffset(target, at));
      Line from = areSums ? Line::at(begun, begunAt(row, zero), result.back())
                          : Line::at(products, k.mul(row, productStride), result.back());
      emitLine(k, to, made, ofResult.ops, ops.weighted.getResult(), from);
    });
  });
}

} // namespace deepstride
