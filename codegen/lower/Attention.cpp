// The attention kernel: one grid item is one head of one batch row. Keys are packed transposed and values as panels
// into scratch; then for a block of query rows the scores, their softmax and the product with the values never leave
// scratch. Rows are independent and K is walked whole, so results do not depend on the number of threads.
#include "codegen/lower/AttentionLowering.h"
#include "codegen/tile/Gemm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

void AttentionLowering::emitPlain() {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Type type = computeType(element);
  Value one = k.constant(1), zero = k.constant(0);
  Value heads = k.index(q[1]), columns = k.index(key[2]), depth = k.index(q[3]);
  Value width = k.index(value[3]), groups = k.index(key[1]);
  k.setGrid(q[0] * q[1] * q[2], 1);
  Value scores = k.scratchOf(type, key[2]);
  Value repeat = k.divide(heads, arith::MaxUIOp::create(b, loc, groups, one));
  Value inverse = k.cell(type), sum = k.cell(type);
  auto accumulate = [&](Value count, llvm::function_ref<Value(Value)> term) {
    memref::StoreOp::create(b, loc, scalarConstant(b, loc, element, 0.0), sum);
    k.loop(zero, count, one, [&](Value i) {
      Value next = arith::AddFOp::create(b, loc, memref::LoadOp::create(b, loc, sum), term(i));
      memref::StoreOp::create(b, loc, next, sum);
    });
    return memref::LoadOp::create(b, loc, sum).getResult();
  };
  k.loop(k.begin, k.end, one, [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, ArrayRef(q).take_front(3));
    Value group = k.divide(at[1], repeat);
    Matrix queries = headOf(queryView, at[0], at[1]), results = headOf(resultView, at[0], at[1]);
    Matrix keys = headOf(keyView, at[0], group), values = headOf(valueView, at[0], group);
    auto place = [&](const Matrix &matrix, Value row, Value column) {
      return k.add(matrix.offset, k.add(k.mul(row, matrix.rowStride), k.mul(column, matrix.columnStride)));
    };
    auto scoreOf = [&](Value column, bool inside) {
      Value dot;
      if (inside || !replacingStep())
        dot = accumulate(depth, [&](Value i) -> Value {
          Value x = k.load(queries.buffer, place(queries, at[2], i), element);
          Value y = k.load(keys.buffer, place(keys, column, i), element);
          return arith::MulFOp::create(b, loc, x, y);
        });
      // Masks may be f32 beside a narrower query, whose scores are computed in f32.
      SmallVector<Value> given;
      for (auto [step, mask] : llvm::zip_equal(steps, masks))
        given.push_back(mask.buffer ? k.load(mask.buffer, k.offsetAt(mask, {0, 1, 2, 3}, {at[0], at[1], at[2], column}),
                                             k.elementOf(step.mask))
                                    : Value());
      return adjust(b, dot, given, inside);
    };
    for (const Segment &segment : segmentsOf(windowOf(at)))
      k.loop(segment.begin, segment.end, one,
             [&](Value column) { memref::StoreOp::create(b, loc, scoreOf(column, segment.inside), scores, column); });
    memref::StoreOp::create(b, loc, neutralElement(b, loc, ds::ReduceKind::max, element), inverse);
    k.loop(zero, columns, one, [&](Value column) {
      Value best = arith::MaximumFOp::create(b, loc, memref::LoadOp::create(b, loc, inverse),
                                             memref::LoadOp::create(b, loc, scores, column));
      memref::StoreOp::create(b, loc, best, inverse);
    });
    Value greatest = memref::LoadOp::create(b, loc, inverse);
    Value total = divisorOf(accumulate(columns, [&](Value column) -> Value {
      Value score = memref::LoadOp::create(b, loc, scores, column);
      Value e = math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, score, greatest));
      memref::StoreOp::create(b, loc, e, scores, column);
      return e;
    }));
    k.loop(zero, width, one, [&](Value i) {
      Value weighted = accumulate(columns, [&](Value column) -> Value {
        Value y = k.load(values.buffer, place(values, column, i), element);
        return arith::MulFOp::create(b, loc, memref::LoadOp::create(b, loc, scores, column), y);
      });
      Value result = orZero(arith::DivFOp::create(b, loc, weighted, total), total);
      k.store(result, results.buffer, place(results, at[2], i), element);
    });
  });
}

void AttentionLowering::emitPanels() {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  ds::ScheduleAttr schedule = ds::scheduleOf(op);
  int64_t lanes = micro->lanes(), panel = schedule.getColumns();
  Value one = k.constant(1), zero = k.constant(0);
  Value rows = k.index(q[2]), columns = k.index(key[2]), depth = k.index(q[3]), width = k.index(value[3]);
  // The values' panel is their whole width where that is a few vectors, so that no column is wasted.
  auto fixedWidth = value[3].constant();
  int64_t valuePanel =
      fixedWidth && *fixedWidth % lanes == 0 && *fixedWidth / lanes <= 4 && *fixedWidth > 0 ? *fixedWidth : panel;
  int64_t rowBlock =
      valuePanel / lanes > panel / lanes ? std::max<int64_t>(1, schedule.getRows() * 3 / 4) : schedule.getRows();
  // Scratch: packed keys, packed values, scores of one row block, one reciprocal sum per row.
  SizeExpr keyPanels = SizeExpr::ceilDiv(key[2], panel), valuePanels = SizeExpr::ceilDiv(value[3], valuePanel);
  auto panelsOf = [&](Value size, int64_t width) -> Value { return k.ceilDiv(size, width); };
  Value keyPanelCount = panelsOf(columns, panel), valuePanelCount = panelsOf(width, valuePanel);
  // Values that lie row by row without a gap are a panel as they are.
  bool arePanel = value[3].isConstant(valuePanel) && valueView.axes[2].stride.isConstant(valuePanel) &&
                  valueView.axes[3].stride.isConstant(1);
  SizeExpr keySpace = (key[2] + SizeExpr(panel)) * q[3];
  SizeExpr valueSpace = arePanel ? SizeExpr(0) : (value[3] + SizeExpr(valuePanel)) * key[2];
  SizeExpr scoreStride = key[2] + SizeExpr(panel);
  Value scratch = k.scratchOf(b.getF32Type(), keySpace + valueSpace + scoreStride * SizeExpr(rowBlock));
  Value valuesAt = k.index(keySpace), scoresAt = k.index(keySpace + valueSpace), stride = k.index(scoreStride);
  Value inverse = memref::AllocaOp::create(b, loc, MemRefType::get({rowBlock}, b.getF32Type()));
  Value groups = arith::MaxUIOp::create(b, loc, k.index(key[1]), one);
  Value repeat = k.divide(k.index(q[1]), groups);

  k.setGrid(q[0] * q[1], 1);
  k.loop(k.begin, k.end, one, [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, ArrayRef(q).take_front(2));
    Value group = k.divide(at[1], repeat);
    // The keys' element (k, n) is row n, column k of the stored matrix.
    Matrix keys = headOf(keyView, at[0], group), values = headOf(valueView, at[0], group);
    std::swap(keys.rowStride, keys.columnStride);
    k.loop(zero, keyPanelCount, one, [&](Value number) {
      emitPackPanel(k, *micro, keys, element, depth, k.mul(number, k.constant(panel)), columns, scratch,
                    k.mul(number, k.mul(depth, k.constant(panel))), panel);
    });
    if (!arePanel)
      k.loop(zero, valuePanelCount, one, [&](Value number) {
        emitPackPanel(k, *micro, values, element, columns, k.mul(number, k.constant(valuePanel)), width, scratch,
                      k.add(valuesAt, k.mul(number, k.mul(columns, k.constant(valuePanel)))), valuePanel);
      });
    Matrix queries = headOf(queryView, at[0], at[1]), results = headOf(resultView, at[0], at[1]);
    k.loop(zero, rows, k.constant(rowBlock), [&](Value block) {
      Value count = k.minimum(k.constant(rowBlock), k.sub(rows, block));
      Matrix query = queries;
      query.offset = k.add(query.offset, k.mul(block, query.rowStride));
      std::optional<BlockWindow> window;
      Value firstPanel = zero, panelEnd = keyPanelCount;
      if (bounds)
        window = emitWindows(rowBlock, at, block, count);
      if (window && replacingStep()) {
        firstPanel = k.divide(loadCell(window->begin), k.constant(panel));
        panelEnd = panelsOf(loadCell(window->end), panel);
      }
      k.loop(firstPanel, panelEnd, one, [&](Value number) {
        Value first = k.mul(number, k.constant(panel));
        Panel packed{scratch, k.mul(number, k.mul(depth, k.constant(panel))), panel / lanes, {}};
        // Rows of scores are as long as whole panels.
        emitPanelProduct(k, *micro, query, count, depth, packed, /*columns=*/{}, schedule.getRows(),
                         [&](Value row, int64_t v, Value tile, Value) {
                           Value column = k.add(first, k.constant(v * lanes));
                           storeLanes(k, tile, scratch, k.add(scoresAt, k.add(k.mul(row, stride), column)), {});
                         });
      });
      View lines{scratch, 0, {Axis{key[2], 1, true, std::nullopt}}};
      k.loop(zero, count, one, [&](Value row) {
        Value cell = k.cell(b.getF32Type()), offset = k.add(scoresAt, k.mul(row, stride));
        Value place[] = {at[0], at[1], k.add(block, row)};
        if (window)
          softmaxWindow(lines, offset, place, row, *window, cell);
        else
          softmaxRow(lines, offset, place, cell);
        memref::StoreOp::create(b, loc, memref::LoadOp::create(b, loc, cell), inverse, row);
      });
      // Columns without a weight are left out of the second product.
      Value firstColumn = zero, weighted = columns;
      if (window) {
        spread(lines, scoresAt, stride, count, *window);
        firstColumn = loadCell(window->begin);
        weighted = arith::MaxSIOp::create(b, loc, k.sub(loadCell(window->end), firstColumn), zero);
      }
      Matrix weights{scratch, k.add(scoresAt, firstColumn), stride, one};
      k.loop(zero, valuePanelCount, one, [&](Value number) {
        Value first = k.mul(number, k.constant(valuePanel));
        Value firstValue = k.add(k.mul(number, columns), firstColumn);
        Value offset = k.add(arePanel ? values.offset : valuesAt, k.mul(firstValue, k.constant(valuePanel)));
        Panel packed{arePanel ? values.buffer : scratch, offset, valuePanel / lanes, {}};
        emitPanelProduct(k, *micro, weights, count, weighted, packed, k.sub(width, first), rowBlock,
                         [&](Value row, int64_t v, Value tile, Value mask) {
                           Value scale = vector::BroadcastOp::create(b, loc, tile.getType(),
                                                                     memref::LoadOp::create(b, loc, inverse, row));
                           Value column = k.add(first, k.constant(v * lanes));
                           Value position =
                               k.add(results.offset, k.add(k.mul(k.add(block, row), results.rowStride), column));
                           Value result = orZero(arith::MulFOp::create(b, loc, tile, scale), scale);
                           storeLanes(k, result, results.buffer, position, mask);
                         });
      });
    });
  });
}

LogicalResult AttentionLowering::run() {
  auto query = operandView(k, op.getQuery()), keys = operandView(k, op.getKey()),
       values = operandView(k, op.getValue()), result = deepstride::resultView(k, op);
  if (!query || !keys || !values || !result || !result->axes[3].stride.isConstant(1))
    return op.emitOpError(
        "shares a kernel with more than transposes, slices and reshapes that strides reach, or its features are moved");
  for (Value value : op->getOperands().drop_front(3)) // masks and positions
    if (!isa<BlockArgument>(value))
      return op.emitOpError("expects masks and positions in memory, found what its kernel computes");
  queryView = *query;
  keyView = *keys;
  valueView = *values;
  resultView = *result;
  auto viewOf = [&](Value value) {
    return value ? k.broadcastView(k.bufferOf(value), k.sizesOf(value), {q[0], q[1], q[2], key[2]}) : View();
  };
  for (const ds::ScoreStep &step : steps)
    masks.push_back(viewOf(step.mask));
  positions = viewOf(op.getPositions());
  SizeExpr scores = q[0] * q[1] * q[2] * key[2];
  k.setFlops(scores * (q[3] + value[3]) * SizeExpr(2) + scores * SizeExpr(5));
  auto kernel = scheduledKernel(k, op, {element, element, element}, /*isPacked=*/false);
  if (failed(kernel))
    return failure();
  micro = std::move(*kernel);
  if (micro)
    emitPanels();
  else
    emitPlain();
  return success();
}

LogicalResult lowerAttention(KernelBuilder &builder, ds::AttentionOp op) {
  return AttentionLowering(builder, op).run();
}

} // namespace deepstride
