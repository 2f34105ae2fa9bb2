// Attention of many queries: packed keys and values, and products by tiles. A thread walks over the rows of queries of
// the heads that share keys, a few hundred at a time. For each block of keys it puts these and their values together
// where they are not in memory as a whole, and packs them, keys transposed; then for a few rows at a time come the
// scores, the exponentials and the product with the values, which is added to what blocks before gave. So neither
// scratch nor what is packed at a time grows with the number of keys. A row's arithmetic is the same whichever rows
// and heads are beside it, so results do not depend on the number of threads.
#include "codegen/lower/AttentionLowering.h"
#include "codegen/lower/Rows.h"
#include "codegen/tile/Squares.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace deepstride {

/// Of about so many rows the sums of weighted values are kept while keys pass: they share what is packed of these.
static constexpr int64_t rowsPerSweep = 512;

/// What the panel form has beside the operands: sizes of panels and blocks, places in scratch, and their contents.
struct AttentionLowering::Panels {
  const MicroKernel &micro;
  int64_t lanes, panel, valuePanel;
  int64_t rows, rowBlock; // of scores, and of the result, at a time
  bool arePanel;          // values are a panel as they lie
  SizeExpr atOnce;        // keys
  int64_t blocks = 1;     // of rows under one sweep over the keys

  Value packed = {}, valuesAt = {};            // panels of keys, then of values
  Value packedBegin = {};                      // cell: where the keys that are packed begin; -1: none are
  Value scores = {}, scoresAt = {};            // of a block of rows
  Value scoreStride = {}, sumStride = {};      // between rows
  Value inverse = {}, factors = {};            // of each row of a block
  Value greatest = {}, totals = {}, sums = {}; // of each row under a sweep; null where all keys are one block
  Value missed = {};                           // whether a block of rows is to meet all keys, whatever its window
  Value anyMissed = {};                        // cell; both null where a window never leaves keys out
  Value queries = {}, packedRows = {};         // where rows are computed, and packed; or null
};

/// A block of rows of a head of queries.
struct AttentionLowering::RowBlock {
  const HeadGroup &group;
  Value head, first, count; // rows [first, first + count)
  Value number;             // among those under a sweep
};

AttentionLowering::Panels AttentionLowering::makePanels() {
  ds::ScheduleAttr schedule = ds::scheduleOf(op);
  const auto *squares = llvm::dyn_cast<SquareKernel>(micro.get());
  int64_t lanes = micro->lanes(), panel = schedule.getColumns(), rows = schedule.getRows(), valuePanel = panel;
  int64_t most = squares ? SquareKernel::squaresPerRow : 4;
  // The values' panel is their whole width where that is a few vectors, so that no column is wasted, or a part of it.
  if (auto fixed = value[3].constant(); fixed && *fixed > 0 && *fixed % lanes == 0) {
    int64_t vectors = *fixed / lanes, parts = (vectors + most - 1) / most;
    if (parts == 1 || squares)
      valuePanel = (vectors + parts - 1) / parts * lanes;
  }
  int64_t rowBlock = !squares && valuePanel > panel ? std::max<int64_t>(1, rows * 3 / 4) : rows;
  // Values that lie row by row without a gap are a panel as they are.
  bool isWhole =
      joinedValues || (valueView.axes[2].stride.isConstant(valuePanel) && valueView.axes[3].stride.isConstant(1));
  bool arePanel = value[3].isConstant(valuePanel) && isWhole && micro->panel == stored;
  SizeExpr atOnce = keysAtOnce(std::lcm(panel, squares ? squares->depth() : micro->interleave));
  bool isOnly = atOnce == key[2];

  // Scratch: packed keys, packed values, scores of one row block, one reciprocal sum per row; rows as they are
  // multiplied, where that is not as they are computed.
  SizeExpr keySpace = panelSpace(*micro, q[3], 1) * (atOnce + SizeExpr(panel));
  SizeExpr valueSpace = arePanel ? SizeExpr(0) : panelSpace(*micro, atOnce, 1) * (value[3] + SizeExpr(valuePanel));
  SizeExpr scoreStride = atOnce + SizeExpr(panel), scoreSpace = scoreStride * SizeExpr(rowBlock);
  SizeExpr sumStride = value[3] + SizeExpr(valuePanel);
  bool isRounded = micro->left != element, isConverted = micro->left != stored; // the weights, or the queries, too
  Value packed = k.scratchOf(storageType(micro->panel), keySpace + valueSpace + (isRounded ? SizeExpr(0) : scoreSpace));
  SizeExpr rowSpace = (q[3] + atOnce + SizeExpr(SquareKernel::lineBytes)) * SizeExpr(rowBlock);
  Panels p{*micro, lanes, panel, valuePanel, rows, rowBlock, arePanel, atOnce};
  p.packed = packed;
  p.valuesAt = k.index(keySpace);
  p.packedBegin = k.cell(k.b.getIndexType());
  p.scores = isRounded ? k.scratchOf(element, scoreSpace) : packed;
  p.scoresAt = isRounded ? k.constant(0) : k.index(keySpace + valueSpace);
  p.scoreStride = k.index(scoreStride);
  p.sumStride = k.index(sumStride);
  p.inverse = cells(rowBlock, element);
  p.packedRows = isConverted ? k.scratchOf(storageType(micro->left), rowSpace) : Value();
  if (!isOnly) {
    p.blocks = std::max<int64_t>(1, rowsPerSweep / rowBlock);
    if (auto fixed = q[2].constant(); fixed && !isShared())
      p.blocks = std::clamp<int64_t>((*fixed + rowBlock - 1) / rowBlock, 1, p.blocks);
    p.factors = cells(rowBlock, element);
    p.greatest = cells(p.blocks * rowBlock, element);
    p.totals = cells(p.blocks * rowBlock, element);
    p.sums = k.scratchOf(element, sumStride * SizeExpr(p.blocks * rowBlock));
  }
  if (bounds && hidesEqually()) {
    p.missed = cells(p.blocks, k.b.getI1Type());
    p.anyMissed = k.cell(k.b.getI1Type());
  }
  for (auto *joined : {&joinedKeys, &joinedValues})
    if (*joined)
      (*joined)->reserve(isShared(), atOnce);
  if (queryRows) {
    queryRows->reserve();
    p.queries = k.scratchOf(storageType(stored), q[3] * SizeExpr(p.blocks * rowBlock));
  }
  return p;
}

void AttentionLowering::emitPanels() {
  OpBuilder &b = k.b;
  Panels p = makePanels();
  Value one = k.constant(1), zero = k.constant(0), no = arith::ConstantOp::create(b, k.loc, b.getBoolAttr(false));
  Value rows = k.index(q[2]), size = k.constant(p.rowBlock), perHead = k.ceilDiv(rows, p.rowBlock);
  Value sweep = k.constant(p.blocks);
  forEachGroup([&](const HeadGroup &group) {
    storeCell(k.constant(-1), p.packedBegin);
    for (auto *joined : {&joinedKeys, &joinedValues})
      if (*joined)
        (*joined)->begin(group.at[0], group.at[1], group.isOwner);
    if (p.atOnce == key[2] && !p.missed)
      return forEachHead(group, [&](ArrayRef<Value> at) {
        k.loop(zero, rows, size, [&](Value first) {
          RowBlock block{group, at[1], first, k.minimum(size, k.sub(rows, first)), zero};
          if (queryRows)
            queryRows->emit({at[0], at[1], first}, block.count, p.queries, zero);
          emitBlock(p, block, allKeys(), {});
        });
      });
    Value firstHead = isShared() ? k.add(k.mul(group.at[1], repeatOf()), group.from) : group.at[1];
    Value heads = isShared() ? k.sub(group.to, group.from) : one, all = k.mul(heads, perHead);
    k.loop(zero, all, sweep, [&](Value begin) {
      auto forEachBlock = [&](llvm::function_ref<void(const RowBlock &)> body) {
        k.loop(begin, k.minimum(k.add(begin, sweep), all), one, [&](Value number) {
          Value head = isShared() ? k.add(firstHead, k.divide(number, perHead)) : firstHead;
          Value first = k.mul(isShared() ? k.remainder(number, perHead) : number, size);
          body({group, head, first, k.minimum(size, k.sub(rows, first)), k.sub(number, begin)});
        });
      };
      if (queryRows)
        forEachBlock([&](const RowBlock &block) {
          queryRows->emit({group.at[0], block.head, block.first}, block.count, p.queries, queriesAt(p, block));
        });
      if (!p.missed) {
        forEachKeyBlock(p.atOnce, [&](const KeyBlock &keys) {
          forEachBlock([&](const RowBlock &block) { emitBlock(p, block, keys, {}); });
        });
        return;
      }
      // Keys that no row of a block sees are left out, at first. Rows that give them weight meet all keys once more.
      storeCell(no, p.anyMissed);
      forEachBlock([&](const RowBlock &block) { memref::StoreOp::create(b, k.loc, no, p.missed, block.number); });
      k.loop(zero, k.constant(2), one, [&](Value round) {
        Value isAgain = arith::CmpIOp::create(b, k.loc, arith::CmpIPredicate::eq, round, one);
        Value takesPart = arith::SelectOp::create(b, k.loc, isAgain, loadCell(p.anyMissed),
                                                  arith::ConstantOp::create(b, k.loc, b.getBoolAttr(true)));
        k.when(takesPart, [&] {
          forEachKeyBlock(p.atOnce, [&](const KeyBlock &keys) {
            forEachBlock([&](const RowBlock &block) { emitBlock(p, block, keys, isAgain); });
          });
        });
      });
    });
  });
  if (const auto *squares = llvm::dyn_cast<SquareKernel>(micro.get()))
    squares->release(k);
}

void AttentionLowering::forEachGroup(llvm::function_ref<void(const HeadGroup &)> body) {
  k.setGrid(q[0] * q[1], 1);
  forEachHeadGroup(k, {q[0], key[1]}, isShared() ? repeatOf() : Value(), body);
}

void AttentionLowering::forEachHead(const HeadGroup &group, llvm::function_ref<void(ArrayRef<Value>)> body) {
  if (!isShared())
    return body(group.at);
  k.loop(group.from, group.to, k.constant(1),
         [&](Value number) { body({group.at[0], k.add(k.mul(group.at[1], repeatOf()), number)}); });
}

Value AttentionLowering::queriesAt(const Panels &p, const RowBlock &block) {
  return k.mul(k.mul(block.number, k.constant(p.rowBlock)), k.index(q[3]));
}

/// Rows of `given` as the products read them: converted, and in squares where those are multiplied.
Matrix AttentionLowering::packRows(const Panels &p, const Matrix &rows, Type given, Value count, Value depth) {
  if (given == p.micro.left)
    return rows;
  if (const auto *squares = llvm::dyn_cast<SquareKernel>(&p.micro))
    return emitPackSquares(k, *squares, rows, given, count, depth, p.packedRows);
  Value zero = k.constant(0), one = k.constant(1), step = k.constant(p.lanes);
  auto type = VectorType::get({p.lanes}, storageType(given));
  bool isLine = getConstantIntValue(rows.columnStride) == 1;
  Value whole = k.mul(k.divide(depth, step), step);
  k.loop(zero, count, one, [&](Value row) {
    Value from = k.add(rows.offset, k.mul(row, rows.rowStride)), to = k.mul(row, depth);
    auto copy = [&](Value column, Value mask) {
      Value numbers = fromStorage(k.b, k.loc, loadLanes(k, type, rows.buffer, k.add(from, column), mask), given);
      storeLanes(k, toStorage(k.b, k.loc, numbers, p.micro.left), p.packedRows, k.add(to, column), mask);
    };
    if (isLine) {
      k.loop(zero, whole, step, [&](Value column) { copy(column, {}); });
      copy(whole, lanesBelow(k, p.lanes, k.sub(depth, whole)));
      return;
    }
    k.loop(zero, depth, one, [&](Value column) {
      Value number = k.load(rows.buffer, k.add(from, k.mul(column, rows.columnStride)), given);
      k.store(emitCast(k.b, k.loc, number, given, p.micro.left), p.packedRows, k.add(to, column), p.micro.left);
    });
  });
  return {p.packedRows, zero, depth, one};
}

/// Where keys or values of a group are, from the first of the block on.
Matrix AttentionLowering::rowsOf(std::optional<JoinedHeads> &joined, const View &view, const HeadGroup &group,
                                 const KeyBlock &keys) {
  if (joined)
    return joined->rows(group.at[0], group.at[1], group.isOwner, rangeOf(keys));
  Matrix rows = headOf(view, group.at[0], group.at[1]);
  rows.offset = k.add(rows.offset, k.mul(keys.begin, rows.rowStride));
  return rows;
}

/// Packs the keys of the block and their values, unless that is done.
void AttentionLowering::emitPack(const Panels &p, const HeadGroup &group, const KeyBlock &keys) {
  Value isOther = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ne, loadCell(p.packedBegin), keys.begin);
  k.when(isOther, [&] {
    storeCell(keys.begin, p.packedBegin);
    Value zero = k.constant(0), one = k.constant(1), count = k.sub(keys.end, keys.begin);
    for (auto *joined : {&joinedKeys, &joinedValues})
      if (*joined)
        (*joined)->write(group.at[0], group.at[1], group.isOwner, rangeOf(keys));
    // The keys' element (k, n) is row n, column k of the stored matrix.
    Matrix rows = rowsOf(joinedKeys, keyView, group, keys);
    std::swap(rows.rowStride, rows.columnStride);
    Value depth = k.index(q[3]), width = k.index(value[3]);
    k.loop(zero, k.ceilDiv(count, p.panel), one, [&](Value number) {
      emitPackPanel(k, p.micro, rows, stored, depth, k.mul(number, k.constant(p.panel)), count, p.packed,
                    k.mul(number, panelElements(k, p.micro, depth, p.panel)), p.panel);
    });
    if (p.arePanel)
      return;
    Matrix values = rowsOf(joinedValues, valueView, group, keys);
    k.loop(zero, k.ceilDiv(width, p.valuePanel), one, [&](Value number) {
      Value place = k.add(p.valuesAt, k.mul(number, panelElements(k, p.micro, count, p.valuePanel)));
      emitPackPanel(k, p.micro, values, stored, count, k.mul(number, k.constant(p.valuePanel)), width, p.packed, place,
                    p.valuePanel);
    });
  });
}

/// A block of rows and a block of keys. `isAgain`: whether rows meet all keys because they were missed before; null
/// where none are.
void AttentionLowering::emitBlock(const Panels &p, const RowBlock &block, const KeyBlock &keys, Value isAgain) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  if (!bounds)
    return emitProducts(p, block, keys, {}, {});
  BlockWindow window = emitWindows(p.rowBlock, {block.group.at[0], block.head}, block.first, block.count);
  Value begin = loadCell(window.begin), end = loadCell(window.end);
  auto narrow = [&] {
    storeCell(within(keys, begin), window.begin);
    storeCell(within(keys, end), window.end);
  };
  if (!isAgain) {
    narrow();
    return emitProducts(p, block, keys, window, {});
  }
  auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  };
  Value isMissed = memref::LoadOp::create(b, loc, p.missed, block.number);
  Value isEmpty = compare(arith::CmpIPredicate::sle, end, begin); // no block of keys meets such rows
  isMissed = arith::OrIOp::create(b, loc, isMissed, isEmpty);
  note(p, block, isMissed);
  Value meets = arith::AndIOp::create(b, loc, compare(arith::CmpIPredicate::slt, keys.begin, end),
                                      compare(arith::CmpIPredicate::slt, begin, keys.end));
  Value takesPart = arith::SelectOp::create(b, loc, isAgain, isMissed, meets);
  begin = arith::SelectOp::create(b, loc, isAgain, k.constant(0), begin);
  end = arith::SelectOp::create(b, loc, isAgain, k.index(key[2]), end);
  k.when(takesPart, [&] {
    KeyBlock part = keys;
    if (!keys.isOnly) {
      part.isFirst = compare(arith::CmpIPredicate::sle, keys.begin, begin);
      part.isLast = compare(arith::CmpIPredicate::sge, keys.end, end);
    }
    narrow();
    emitProducts(p, block, part, window, isAgain);
  });
}

void AttentionLowering::note(const Panels &p, const RowBlock &block, Value isMissed) {
  memref::StoreOp::create(k.b, k.loc, isMissed, p.missed, block.number);
  storeCell(arith::OrIOp::create(k.b, k.loc, loadCell(p.anyMissed), isMissed), p.anyMissed);
}

/// Makes the scores of a block of rows exponentials; scratch keeps what the products with the values are multiplied by.
void AttentionLowering::emitSoftmax(const Panels &p, const RowBlock &block, const KeyBlock &keys, const View &lines,
                                    const std::optional<BlockWindow> &window) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  k.loop(k.constant(0), block.count, k.constant(1), [&](Value row) {
    Value offset = k.sub(k.add(p.scoresAt, k.mul(row, p.scoreStride)), keys.begin);
    Value place[] = {block.group.at[0], block.head, k.add(block.first, row)};
    Value state = k.add(k.mul(block.number, k.constant(p.rowBlock)), row);
    RunningSoftmax before = noSoftmax();
    if (!keys.isOnly)
      for (auto [number, cells] : {std::pair(&before.greatest, p.greatest), std::pair(&before.sum, p.totals)})
        *number = arith::SelectOp::create(b, loc, keys.isFirst, *number, memref::LoadOp::create(b, loc, cells, state));
    RunningSoftmax softmax = window ? softmaxWindow(lines, offset, place, row, *window, keys, before)
                                    : softmaxRow(lines, offset, place, keys, before);
    if (!keys.isOnly) {
      memref::StoreOp::create(b, loc, softmax.greatest, p.greatest, state);
      memref::StoreOp::create(b, loc, softmax.sum, p.totals, state);
      memref::StoreOp::create(b, loc, softmax.factor, p.factors, row);
    }
    Value inverse = inverseOf(softmax, keys.isOnly);
    memref::StoreOp::create(b, loc, dropout ? unlessDropped(place, inverse) : inverse, p.inverse, row);
  });
}

void AttentionLowering::emitProducts(const Panels &p, const RowBlock &block, const KeyBlock &keys,
                                     const std::optional<BlockWindow> &window, Value isAgain) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Value one = k.constant(1), zero = k.constant(0), scratch = p.scores, count = block.count;
  Value keyCount = k.sub(keys.end, keys.begin), depth = k.index(q[3]), width = k.index(value[3]);
  Value batch = block.group.at[0];
  emitPack(p, block.group, keys);
  Matrix query{p.queries, {}, depth, one};
  if (queryRows) {
    query.offset = queriesAt(p, block);
  } else {
    query = headOf(queryView, batch, block.head);
    query.offset = k.add(query.offset, k.mul(block.first, query.rowStride));
  }
  query = packRows(p, query, stored, count, depth);
  // Columns of the block of keys.
  auto fromBegin = [&](Value cell) { return k.sub(loadCell(cell), keys.begin); };
  Value firstPanel = zero, panelEnd = k.ceilDiv(keyCount, p.panel);
  if (window && replacingStep()) {
    firstPanel = k.divide(fromBegin(window->begin), k.constant(p.panel));
    panelEnd = k.ceilDiv(fromBegin(window->end), p.panel);
  }
  k.loop(firstPanel, panelEnd, one, [&](Value number) {
    Value first = k.mul(number, k.constant(p.panel));
    Panel packed{p.packed, k.mul(number, panelElements(k, p.micro, depth, p.panel)), p.panel / p.lanes, {}};
    // Rows of scores are as long as whole panels.
    emitPanelProduct(k, p.micro, query, count, depth, packed, /*columns=*/{}, p.rows,
                     [&](Value row, int64_t v, Value tile, Value) {
                       Value column = k.add(first, k.constant(v * p.lanes));
                       storeLanes(k, tile, scratch, k.add(p.scoresAt, k.add(k.mul(row, p.scoreStride), column)), {});
                     });
  });
  View lines{scratch, 0, {Axis{key[2], 1, true, std::nullopt}}};
  emitSoftmax(p, block, keys, lines, window);
  // Columns without a weight are left out of the second product. Rows that give some beside it have no result yet.
  Value firstColumn = zero, weighted = keyCount, isDone = keys.isOnly ? Value() : keys.isLast;
  if (window) {
    if (!isAgain) {
      spread(lines, p.scoresAt, p.scoreStride, count, *window, keys);
    } else {
      Value isMissed = memref::LoadOp::create(b, loc, p.missed, block.number), spills = loadCell(window->spills);
      if (isDone)
        spills = arith::AndIOp::create(b, loc, spills, isDone);
      isMissed = arith::OrIOp::create(b, loc, isMissed, spills);
      note(p, block, isMissed);
      Value isMade = arith::OrIOp::create(b, loc, isAgain, negated(isMissed));
      isDone = isDone ? arith::AndIOp::create(b, loc, isDone, isMade).getResult() : isMade;
    }
    firstColumn = fromBegin(window->begin);
    weighted = k.maximum(k.sub(fromBegin(window->end), firstColumn), zero);
  }
  if (dropout)
    k.loop(zero, count, one, [&](Value row) {
      Value place[] = {batch, block.head, k.add(block.first, row)};
      Value first = k.add(keys.begin, firstColumn);
      dropRow(lines, k.sub(k.add(p.scoresAt, k.mul(row, p.scoreStride)), keys.begin), place,
              {first, k.add(first, weighted), true});
    });
  Matrix weights = packRows(p, {scratch, k.add(p.scoresAt, firstColumn), p.scoreStride, one}, element, count, weighted);
  Value panelSize = panelElements(k, p.micro, keyCount, p.valuePanel);
  Matrix values{p.packed, p.valuesAt, {}, {}};
  if (p.arePanel)
    values = rowsOf(joinedValues, valueView, block.group, keys);
  Matrix results = headOf(resultView, batch, block.head);
  k.loop(zero, k.ceilDiv(width, p.valuePanel), one, [&](Value number) {
    Value first = k.mul(number, k.constant(p.valuePanel));
    Value offset = k.add(k.mul(number, panelSize), k.mul(firstColumn, k.constant(p.valuePanel)));
    Panel packed{values.buffer, k.add(values.offset, offset), p.valuePanel / p.lanes, {}};
    emitPanelProduct(k, p.micro, weights, count, weighted, packed, k.sub(width, first), p.rowBlock,
                     [&](Value row, int64_t v, Value tile, Value mask) {
                       Value column = k.add(first, k.constant(v * p.lanes)), place, sum = tile;
                       if (!keys.isOnly) {
                         place = k.add(k.mul(block.number, k.constant(p.rowBlock)), row);
                         place = k.add(k.mul(place, p.sumStride), column);
                         sum = addedTo(p.sums, place, memref::LoadOp::create(b, loc, p.factors, row), tile, keys);
                         storeLanes(k, sum, p.sums, place, {});
                       }
                       k.when(isDone, [&] {
                         Value scale = vector::BroadcastOp::create(b, loc, tile.getType(),
                                                                   memref::LoadOp::create(b, loc, p.inverse, row));
                         Value position = k.add(k.mul(k.add(block.first, row), results.rowStride), column);
                         Value result = orZero(arith::MulFOp::create(b, loc, sum, scale), scale);
                         storeLanes(k, toStorage(b, loc, rounded(result), resultElement), results.buffer,
                                    k.add(results.offset, position), mask);
                       });
                     });
  });
  if (takesExtremes)
    k.when(isDone, [&] {
      k.loop(zero, count, one, [&](Value row) {
        emitRowExtremes(k, op->getResult(0), resultView, {batch, block.head, k.add(block.first, row)});
      });
    });
}

Value AttentionLowering::negated(Value condition) {
  Value yes = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
  return arith::XOrIOp::create(k.b, k.loc, condition, yes);
}

} // namespace deepstride
