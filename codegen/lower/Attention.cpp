// The attention kernel: one grid item is one head of queries of one batch row. A thread puts the keys and values of its
// heads together where they are not in memory as a whole, and packs them, once for neighbours that share them: keys
// transposed and values as panels. Then for a block of query rows the scores, their softmax and the product with the
// values never leave scratch. Rows are independent and K is walked whole, so results do not depend on the number of
// threads.
#include "codegen/lower/AttentionLowering.h"
#include "codegen/lower/Rows.h"
#include "codegen/tile/Squares.h"
#include "dialects/ds/Reductions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

void AttentionLowering::emitPlain() {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Type type = computeType(element);
  Value one = k.constant(1), zero = k.constant(0);
  Value columns = k.index(key[2]), depth = k.index(q[3]);
  Value width = k.index(value[3]);
  k.setGrid(q[0] * q[1] * q[2], 1);
  Value scores = k.scratchOf(type, key[2]), repeat = repeatOf();
  k.loop(k.begin, k.end, one, [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, ArrayRef(q).take_front(3));
    Value group = k.divide(at[1], repeat);
    Matrix queries = headOf(queryView, at[0], at[1]), results = headOf(resultView, at[0], at[1]);
    Matrix keys = headOf(keyView, at[0], group), values = headOf(valueView, at[0], group);
    Value total = plainSoftmax(at, scores, [&](Value column) {
      return plainSum(depth, [&](Value i) -> Value {
        Value x = k.load(queries.buffer, queries.at(k, at[2], i), stored);
        Value y = k.load(keys.buffer, keys.at(k, column, i), stored);
        return arith::MulFOp::create(b, loc, asMultiplied(x), asMultiplied(y));
      });
    });
    if (dropout) {
      Value start = placeOf(at), factor = arith::DivFOp::create(b, loc, constant(b, dropoutScale()), total);
      k.loop(zero, columns, one, [&](Value column) {
        Value weight = arith::MulFOp::create(b, loc, memref::LoadOp::create(b, loc, scores, column), factor);
        Value kept = arith::SelectOp::create(b, loc, keeps(b, start, column), weight, constant(b, 0));
        memref::StoreOp::create(b, loc, kept, scores, column);
      });
    }
    k.loop(zero, width, one, [&](Value i) {
      Value weighted = plainSum(columns, [&](Value column) -> Value {
        Value x = memref::LoadOp::create(b, loc, scores, column);
        Value y = k.load(values.buffer, values.at(k, column, i), stored);
        return arith::MulFOp::create(b, loc, asMultiplied(x), asMultiplied(y));
      });
      if (!dropout)
        weighted = arith::DivFOp::create(b, loc, weighted, total);
      Value result = orZero(weighted, total);
      k.store(rounded(result), results.buffer, results.at(k, at[2], i), resultElement);
    });
    if (takesExtremes)
      emitRowExtremes(k, op->getResult(0), resultView, at);
  });
}

/// What the panel form has beside the operands: sizes of panels and blocks, places in scratch, and their contents.
struct AttentionLowering::Panels {
  const MicroKernel &micro;
  int64_t lanes, panel, valuePanel, rows, rowBlock; // rows of scores, and of the result, at a time
  bool arePanel;                                    // values are a panel as they lie
  Value packed, valuesAt;                           // panels of keys, then of values
  Value scores, scoresAt, scoreStride, inverse;
  Value queries, packedRows; // where rows are computed, and packed; or null
  Value keyPanels, valuePanels;
  Matrix values = {};
};

void AttentionLowering::emitPanels() {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  ds::ScheduleAttr schedule = ds::scheduleOf(op);
  int64_t lanes = micro->lanes(), panel = schedule.getColumns();
  Value one = k.constant(1), zero = k.constant(0);
  Value columns = k.index(key[2]), depth = k.index(q[3]), width = k.index(value[3]);
  const auto *squares = llvm::dyn_cast<SquareKernel>(micro.get());
  int64_t most = squares ? SquareKernel::squaresPerRow : 4, valuePanel = panel;
  // The values' panel is their whole width where that is a few vectors, so that no column is wasted, or a part of it.
  if (auto fixed = value[3].constant(); fixed && *fixed > 0 && *fixed % lanes == 0) {
    int64_t vectors = *fixed / lanes, parts = (vectors + most - 1) / most;
    if (parts == 1 || squares)
      valuePanel = (vectors + parts - 1) / parts * lanes;
  }
  int64_t rowBlock =
      !squares && valuePanel > panel ? std::max<int64_t>(1, schedule.getRows() * 3 / 4) : schedule.getRows();
  // Values that lie row by row without a gap are a panel as they are.
  bool isWhole =
      joinedValues || (valueView.axes[2].stride.isConstant(valuePanel) && valueView.axes[3].stride.isConstant(1));
  bool arePanel = value[3].isConstant(valuePanel) && isWhole && micro->panel == stored;
  // Scratch: packed keys, packed values, scores of one row block, one reciprocal sum per row; rows as they are
  // multiplied, where that is not as they are computed.
  SizeExpr keySpace = panelSpace(*micro, q[3], 1) * (key[2] + SizeExpr(panel));
  SizeExpr valueSpace = arePanel ? SizeExpr(0) : panelSpace(*micro, key[2], 1) * (value[3] + SizeExpr(valuePanel));
  SizeExpr scoreStride = key[2] + SizeExpr(panel), scoreSpace = scoreStride * SizeExpr(rowBlock);
  bool isRounded = micro->left != element, isConverted = micro->left != stored; // the weights, or the queries, too
  Value packed = k.scratchOf(storageType(micro->panel), keySpace + valueSpace + (isRounded ? SizeExpr(0) : scoreSpace));
  SizeExpr rowSpace = (q[3] + key[2] + SizeExpr(SquareKernel::lineBytes)) * SizeExpr(rowBlock);
  Panels p{*micro,
           lanes,
           panel,
           valuePanel,
           schedule.getRows(),
           rowBlock,
           arePanel,
           packed,
           k.index(keySpace),
           isRounded ? k.scratchOf(element, scoreSpace) : packed,
           isRounded ? zero : k.index(keySpace + valueSpace),
           k.index(scoreStride),
           memref::AllocaOp::create(b, loc, MemRefType::get({rowBlock}, element)),
           {},
           isConverted ? k.scratchOf(storageType(micro->left), rowSpace) : Value(),
           k.ceilDiv(columns, panel),
           k.ceilDiv(width, valuePanel)};
  for (auto *joined : {&joinedKeys, &joinedValues})
    if (*joined)
      (*joined)->reserve(isShared());
  if (queryRows) {
    queryRows->reserve();
    p.queries = k.scratchOf(storageType(stored), q[3] * SizeExpr(rowBlock));
  }

  forEachGroup([&](const HeadGroup &group) {
    auto matrixOf = [&](std::optional<JoinedHeads> &joined, const View &view) {
      return joined ? joined->emit(group.at[0], group.at[1], group.isOwner) : headOf(view, group.at[0], group.at[1]);
    };
    // The keys' element (k, n) is row n, column k of the stored matrix.
    Matrix keys = matrixOf(joinedKeys, keyView);
    p.values = matrixOf(joinedValues, valueView);
    std::swap(keys.rowStride, keys.columnStride);
    k.loop(zero, p.keyPanels, one, [&](Value number) {
      emitPackPanel(k, *micro, keys, stored, depth, k.mul(number, k.constant(panel)), columns, packed,
                    k.mul(number, panelElements(k, *micro, depth, panel)), panel);
    });
    if (!arePanel)
      k.loop(zero, p.valuePanels, one, [&](Value number) {
        emitPackPanel(k, *micro, p.values, stored, columns, k.mul(number, k.constant(valuePanel)), width, packed,
                      k.add(p.valuesAt, k.mul(number, panelElements(k, *micro, columns, valuePanel))), valuePanel);
      });
    forEachHead(group, [&](ArrayRef<Value> at) { emitHead(p, at); });
  });
  if (squares)
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

Value AttentionLowering::asMultiplied(Value x) {
  return op.getRounds() ? emitCast(k.b, k.loc, x, element, *op.getRounds()) : x;
}

/// The rows of one head of queries, against packed keys and values.
void AttentionLowering::emitHead(const Panels &p, ArrayRef<Value> at) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Value one = k.constant(1), zero = k.constant(0), scratch = p.scores;
  Value rows = k.index(q[2]), columns = k.index(key[2]), depth = k.index(q[3]), width = k.index(value[3]);
  Matrix results = headOf(resultView, at[0], at[1]);
  k.loop(zero, rows, k.constant(p.rowBlock), [&](Value block) {
    Value count = k.minimum(k.constant(p.rowBlock), k.sub(rows, block));
    Matrix query;
    if (queryRows) {
      queryRows->emit({at[0], at[1], block}, count, p.queries, zero);
      query = {p.queries, zero, depth, one};
    } else {
      query = headOf(queryView, at[0], at[1]);
      query.offset = k.add(query.offset, k.mul(block, query.rowStride));
    }
    query = packRows(p, query, stored, count, depth);
    std::optional<BlockWindow> window;
    Value firstPanel = zero, panelEnd = p.keyPanels;
    if (bounds)
      window = emitWindows(p.rowBlock, at, block, count);
    if (window && replacingStep()) {
      firstPanel = k.divide(loadCell(window->begin), k.constant(p.panel));
      panelEnd = k.ceilDiv(loadCell(window->end), p.panel);
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
    k.loop(zero, count, one, [&](Value row) {
      Value cell = k.cell(element), offset = k.add(p.scoresAt, k.mul(row, p.scoreStride));
      Value place[] = {at[0], at[1], k.add(block, row)};
      if (window)
        softmaxWindow(lines, offset, place, row, *window, cell);
      else
        softmaxRow(lines, offset, place, cell);
      memref::StoreOp::create(b, loc, memref::LoadOp::create(b, loc, cell), p.inverse, row);
    });
    // Columns without a weight are left out of the second product.
    Value firstColumn = zero, weighted = columns;
    if (window) {
      spread(lines, p.scoresAt, p.scoreStride, count, *window);
      firstColumn = loadCell(window->begin);
      weighted = arith::MaxSIOp::create(b, loc, k.sub(loadCell(window->end), firstColumn), zero);
    }
    if (dropout) // weights are divided by their sum, too: there may be none left of a row that is not a number
      k.loop(zero, count, one, [&](Value row) {
        Value place[] = {at[0], at[1], k.add(block, row)};
        Value factor = memref::LoadOp::create(b, loc, p.inverse, row);
        factor = arith::MulFOp::create(b, loc, factor, constant(b, dropoutScale()));
        dropRow(lines, k.add(p.scoresAt, k.mul(row, p.scoreStride)), place,
                {firstColumn, k.add(firstColumn, weighted), true}, factor);
      });
    Matrix weights =
        packRows(p, {scratch, k.add(p.scoresAt, firstColumn), p.scoreStride, one}, element, count, weighted);
    Value valueElements = panelElements(k, p.micro, columns, p.valuePanel);
    k.loop(zero, p.valuePanels, one, [&](Value number) {
      Value first = k.mul(number, k.constant(p.valuePanel));
      Value offset = k.add(k.mul(number, valueElements), k.mul(firstColumn, k.constant(p.valuePanel)));
      offset = k.add(p.arePanel ? p.values.offset : p.valuesAt, offset);
      Panel packed{p.arePanel ? p.values.buffer : p.packed, offset, p.valuePanel / p.lanes, {}};
      emitPanelProduct(
          k, p.micro, weights, count, weighted, packed, k.sub(width, first), p.rowBlock,
          [&](Value row, int64_t v, Value tile, Value mask) {
            Value scale =
                vector::BroadcastOp::create(b, loc, tile.getType(), memref::LoadOp::create(b, loc, p.inverse, row));
            Value column = k.add(first, k.constant(v * p.lanes));
            Value position = k.add(results.offset, k.add(k.mul(k.add(block, row), results.rowStride), column));
            Value result = orZero(dropout ? tile : arith::MulFOp::create(b, loc, tile, scale), scale);
            storeLanes(k, toStorage(b, loc, rounded(result), resultElement), results.buffer, position, mask);
          });
    });
    if (takesExtremes)
      k.loop(zero, count, one,
             [&](Value row) { emitRowExtremes(k, op->getResult(0), resultView, {at[0], at[1], k.add(block, row)}); });
  });
}

/// The result as its kernel yields it.
Value AttentionLowering::rounded(Value result) {
  for (ds::CastOp cast : roundings)
    result = emitCast(k.b, k.loc, result, k.elementOf(cast.getInput()), k.elementOf(cast.getResult()));
  return result;
}

LogicalResult AttentionLowering::run() {
  Type narrow = op.getRounds().value_or(element);
  auto kernel = scheduledKernel(k, op, {narrow, narrow, element}, /*isPacked=*/op.getRounds().has_value());
  if (failed(kernel))
    return failure();
  micro = std::move(*kernel);
  if (micro && op.getRounds())
    k.setArithmetic(micro->arithmetic());
  bool isPanels = micro != nullptr;
  // An operand is read in place, or computed and put together in panels.
  auto viewOf = [&](Value value, View &view) {
    auto found = operandView(k, value);
    if (found)
      view = *found;
    return found.has_value();
  };
  auto isRead = [&](Value value, View &view, std::optional<JoinedHeads> &joined) {
    if (isPanels)
      joined = JoinedHeads::of(k, value);
    return joined || viewOf(value, view);
  };
  bool isReached = isRead(op.getKey(), keyView, joinedKeys) && isRead(op.getValue(), valueView, joinedValues);
  if (isPanels)
    queryRows = RowSource::of(k, op.getQuery());
  if (queryRows && queryRows->isStored())
    queryRows.reset();
  isReached = isReached && (queryRows || viewOf(op.getQuery(), queryView));
  auto result = deepstride::resultView(k, op->getResult(0));
  if (!isReached || !result || !result->axes[3].stride.isConstant(1))
    return op.emitOpError("shares a kernel with more than windows that strides reach, row ops and caches of its "
                          "operands, or its features are moved");
  auto isJoined = [&](Value value) {
    return (joinedKeys && joinedKeys->has(value)) || (joinedValues && joinedValues->has(value));
  };
  SmallVector<Value> results; // one, which resultView has found
  llvm::copy_if(k.yielded(), std::back_inserter(results), [&](Value value) {
    return !isJoined(value) && !(value.getDefiningOp() && ds::extremesOf(value.getDefiningOp()));
  });
  if (results.size() != 1)
    return op.emitOpError("shares a kernel that yields more than its result, its keys and its values");
  resultElement = k.elementOf(results.front());
  for (Operation *behind = results.front().getDefiningOp(); behind != op;
       behind = behind->getOperand(0).getDefiningOp())
    if (auto cast = dyn_cast<ds::CastOp>(behind))
      roundings.insert(roundings.begin(), cast);
  takesExtremes = llvm::any_of(
      k.yielded(), [](Value value) { return value.getDefiningOp() && ds::extremesOf(value.getDefiningOp()); });
  if (takesExtremes && (!roundings.empty() || stored != element))
    return op.emitOpError("shares a kernel with extremes of what it rounds");
  if (!roundings.empty() && stored != element)
    return op.emitOpError("shares a kernel with a cast of a result in less than 32 bits");
  if (failed(findMasks(op, 3)))
    return failure();
  prepareDropout();
  resultView = *result;
  SizeExpr scores = q[0] * q[1] * q[2] * key[2];
  k.setFlops(scores * (q[3] + value[3]) * SizeExpr(2) + scores * SizeExpr(5));
  if (isPanels && hasOneQuery())
    emitOneQuery();
  else if (isPanels)
    emitPanels();
  else
    emitPlain();
  return success();
}

LogicalResult lowerAttention(KernelBuilder &builder, ds::AttentionOp op) {
  return AttentionLowering(builder, op).run();
}

} // namespace deepstride
