// The attention kernel: one grid item is one head of one batch row. Keys are packed transposed and values as panels
// into scratch; then for a block of query rows the scores, their softmax and the product with the values never leave
// scratch. Rows are independent and K is walked whole, so results do not depend on the number of threads.
#include "codegen/lower/KernelBuilder.h"
#include "codegen/lower/MicroKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {

class AttentionLowering {
public:
  AttentionLowering(KernelBuilder &k, ds::AttentionOp op)
      : k(k), op(op), element(k.elementOf(op.getQuery())), q(k.sizesOf(op.getQuery())), key(k.sizesOf(op.getKey())),
        value(k.sizesOf(op.getValue())) {}
  LogicalResult run();

private:
  void emitPlain();
  void emitPanels();
  Value headOffset(ArrayRef<SizeExpr> shape, Value batch, Value head);
  Value divisorOf(Value sum);
  Value elementOf(const View &view, Value operand, ArrayRef<Value> at);
  Value orZero(Value result, Value sum);
  Value adjust(OpBuilder &b, Value score, Value factor, Value mask);
  void softmaxRow(Value scores, Value offset, Value batch, Value head, Value row, Value inverseCell);

  KernelBuilder &k;
  ds::AttentionOp op;
  Type element;
  SizeVector q, key, value;
  View mask, factor;
};

Value AttentionLowering::headOffset(ArrayRef<SizeExpr> shape, Value batch, Value head) {
  Value matrix = k.mul(k.index(shape[2]), k.index(shape[3]));
  return k.mul(k.add(k.mul(batch, k.index(shape[1])), head), matrix);
}

Value AttentionLowering::elementOf(const View &view, Value operand, ArrayRef<Value> at) {
  // Masks may be f32 beside a narrower query, whose scores are computed in f32.
  return view.buffer ? k.load(view.buffer, k.offsetAt(view, {0, 1, 2, 3}, at), k.elementOf(operand)) : Value();
}

// Without keys nothing is summed: the result is 0 then, as a product over nothing is, and not 0 / 0.
Value AttentionLowering::divisorOf(Value sum) {
  Value none = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, k.index(key[2]), k.constant(0));
  return arith::SelectOp::create(k.b, k.loc, none, scalarConstant(k.b, k.loc, element, 1.0), sum);
}

/// factor * cap(scale * score) + mask, of which factor and mask may be null.
Value AttentionLowering::adjust(OpBuilder &b, Value score, Value factor, Value mask) {
  Location loc = k.loc;
  auto constant = [&](double value) { return scalarConstant(b, loc, element, value); };
  score = arith::MulFOp::create(b, loc, score, constant(op.getScale().convertToDouble()));
  if (op.getSoftcap()) {
    double cap = op.getSoftcap()->convertToDouble();
    Value bounded = math::TanhOp::create(b, loc, arith::DivFOp::create(b, loc, score, constant(cap)));
    score = arith::MulFOp::create(b, loc, bounded, constant(cap));
  }
  if (factor)
    score = arith::MulFOp::create(b, loc, score, factor);
  return mask ? arith::AddFOp::create(b, loc, score, mask).getResult() : score;
}

/// With `guard`, 0 where the row's sum is not a number.
Value AttentionLowering::orZero(Value result, Value sum) {
  if (!op.getGuard())
    return result;
  Value isNan = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::UNO, sum, sum);
  Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(result.getType()));
  return arith::SelectOp::create(k.b, k.loc, isNan, zero, result);
}

// The adjusted scores; then exponentials of the differences to the greatest, and 1 / their sum.
void AttentionLowering::softmaxRow(Value scores, Value offset, Value batch, Value head, Value row, Value inverseCell) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  SmallVector<unsigned> columnAxis = {0};
  View window{scores, 0, {Axis{key[2], 1, true, std::nullopt}}};
  Value line = k.memrefOf(window, offset, columnAxis);
  AffineMap all = AffineMap::getMultiDimIdentityMap(1, b.getContext());
  AffineMap none = AffineMap::get(1, 0, b.getContext());
  SmallVector<Value> inputs = {line};
  SmallVector<AffineMap> maps = {all};
  for (const View *view : {&factor, &mask}) {
    if (!view->buffer)
      continue;
    Value base = k.offsetAt(*view, {0, 1, 2}, {batch, head, row});
    View viewLine{view->buffer, 0, {view->axes[3]}};
    inputs.push_back(k.memrefOf(viewLine, base, columnAxis));
    maps.push_back(view->axes[3].present ? all : none);
  }
  maps.push_back(all);
  linalg::GenericOp::create(b, loc, inputs, ValueRange{line}, maps, {utils::IteratorType::parallel},
                            [&](OpBuilder &body, Location, ValueRange v) {
                              Value score = adjust(body, v[0], factor.buffer ? v[1] : Value(),
                                                   mask.buffer ? v[inputs.size() - 1] : Value());
                              linalg::YieldOp::create(body, loc, score);
                            });
  auto reduce = [&](ds::ReduceKind kind) {
    Value cell = k.cell(computeType(element));
    memref::StoreOp::create(b, loc, neutralElement(b, loc, kind, element), cell);
    linalg::GenericOp::create(b, loc, ValueRange{line}, ValueRange{cell}, {all, none}, {utils::IteratorType::reduction},
                              [&](OpBuilder &body, Location, ValueRange v) {
                                linalg::YieldOp::create(body, loc, emitCombine(body, loc, kind, v[1], v[0], element));
                              });
    return memref::LoadOp::create(b, loc, cell).getResult();
  };
  Value greatest = reduce(ds::ReduceKind::max);
  linalg::GenericOp::create(b, loc, ValueRange{line}, ValueRange{line}, {all, all}, {utils::IteratorType::parallel},
                            [&](OpBuilder &body, Location, ValueRange v) {
                              Value difference = arith::SubFOp::create(body, loc, v[0], greatest);
                              linalg::YieldOp::create(body, loc,
                                                      math::ExpOp::create(body, loc, difference).getResult());
                            });
  Value inverse =
      arith::DivFOp::create(b, loc, scalarConstant(b, loc, element, 1.0), divisorOf(reduce(ds::ReduceKind::sum)));
  memref::StoreOp::create(b, loc, inverse, inverseCell);
}

void AttentionLowering::emitPlain() {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Type type = computeType(element);
  Value one = k.constant(1), zero = k.constant(0);
  Value heads = k.index(q[1]), columns = k.index(key[2]), depth = k.index(q[3]);
  Value width = k.index(value[3]), groups = k.index(key[1]);
  Value queryBuffer = k.bufferOf(op.getQuery()), keyBuffer = k.bufferOf(op.getKey()),
        valueBuffer = k.bufferOf(op.getValue()), output = k.outputBuffer(0);
  k.setGrid(q[0] * q[1] * q[2], 1);
  Value scores = k.scratchOf(type, key[2]);
  Value repeat = arith::DivUIOp::create(b, loc, heads, arith::MaxUIOp::create(b, loc, groups, one));
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
    Value group = arith::DivUIOp::create(b, loc, at[1], repeat);
    Value queryRow = k.add(headOffset(q, at[0], at[1]), k.mul(at[2], depth));
    Value keys = headOffset(key, at[0], group), values = headOffset(value, at[0], group);
    k.loop(zero, columns, one, [&](Value column) {
      Value dot = accumulate(depth, [&](Value i) -> Value {
        Value x = k.load(queryBuffer, k.add(queryRow, i), element);
        Value y = k.load(keyBuffer, k.add(keys, k.add(k.mul(column, depth), i)), element);
        return arith::MulFOp::create(b, loc, x, y);
      });
      Value place[] = {at[0], at[1], at[2], column};
      Value score = adjust(b, dot, elementOf(factor, op.getFactor(), place), elementOf(mask, op.getMask(), place));
      memref::StoreOp::create(b, loc, score, scores, column);
    });
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
        Value y = k.load(valueBuffer, k.add(values, k.add(k.mul(column, width), i)), element);
        return arith::MulFOp::create(b, loc, memref::LoadOp::create(b, loc, scores, column), y);
      });
      Value result = orZero(arith::DivFOp::create(b, loc, weighted, total), total);
      k.store(result, output, k.add(k.mul(item, width), i), element);
    });
  });
}

void AttentionLowering::emitPanels() {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  int64_t lanes = k.target.lanes, panel = k.target.panel;
  Value one = k.constant(1), zero = k.constant(0);
  Value rows = k.index(q[2]), columns = k.index(key[2]), depth = k.index(q[3]), width = k.index(value[3]);
  Value output = k.outputBuffer(0);
  // The values' panel is their whole width where that is a few vectors, so that no column is wasted.
  auto fixedWidth = value[3].constant();
  int64_t valuePanel =
      fixedWidth && *fixedWidth % lanes == 0 && *fixedWidth / lanes <= 4 && *fixedWidth > 0 ? *fixedWidth : panel;
  int64_t rowBlock =
      valuePanel / lanes > panel / lanes ? std::max<int64_t>(1, k.target.rowBlock * 3 / 4) : k.target.rowBlock;
  // Scratch: packed keys, packed values, scores of one row block, one reciprocal sum per row.
  SizeExpr keyPanels = SizeExpr::ceilDiv(key[2], panel), valuePanels = SizeExpr::ceilDiv(value[3], valuePanel);
  auto panelsOf = [&](Value size, int64_t width) -> Value {
    return arith::DivUIOp::create(b, loc, k.add(size, k.constant(width - 1)), k.constant(width));
  };
  Value keyPanelCount = panelsOf(columns, panel), valuePanelCount = panelsOf(width, valuePanel);
  SizeExpr keySpace = (key[2] + SizeExpr(panel)) * q[3], valueSpace = (value[3] + SizeExpr(valuePanel)) * key[2];
  SizeExpr scoreStride = key[2] + SizeExpr(panel);
  Value scratch = k.scratchOf(b.getF32Type(), keySpace + valueSpace + scoreStride * SizeExpr(rowBlock));
  Value valuesAt = k.index(keySpace), scoresAt = k.index(keySpace + valueSpace), stride = k.index(scoreStride);
  Value inverse = memref::AllocaOp::create(b, loc, MemRefType::get({rowBlock}, b.getF32Type()));
  Value groups = arith::MaxUIOp::create(b, loc, k.index(key[1]), one);
  Value repeat = arith::DivUIOp::create(b, loc, k.index(q[1]), groups);

  k.setGrid(q[0] * q[1], 1);
  k.loop(k.begin, k.end, one, [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, ArrayRef(q).take_front(2));
    Value group = arith::DivUIOp::create(b, loc, at[1], repeat);
    // The keys' element (k, n) is row n, column k of the stored matrix.
    Matrix keys{k.bufferOf(op.getKey()), headOffset(key, at[0], group), one, depth};
    Matrix values{k.bufferOf(op.getValue()), headOffset(value, at[0], group), width, one};
    k.loop(zero, keyPanelCount, one, [&](Value number) {
      emitPackPanel(k, keys, depth, k.mul(number, k.constant(panel)), columns, scratch,
                    k.mul(number, k.mul(depth, k.constant(panel))), panel);
    });
    k.loop(zero, valuePanelCount, one, [&](Value number) {
      emitPackPanel(k, values, columns, k.mul(number, k.constant(valuePanel)), width, scratch,
                    k.add(valuesAt, k.mul(number, k.mul(columns, k.constant(valuePanel)))), valuePanel);
    });
    Value queries = headOffset(q, at[0], at[1]);
    Value results = k.mul(item, k.mul(rows, width));
    k.loop(zero, rows, k.constant(rowBlock), [&](Value block) {
      Value count = k.minimum(k.constant(rowBlock), k.sub(rows, block));
      Matrix query{k.bufferOf(op.getQuery()), k.add(queries, k.mul(block, depth)), depth, one};
      k.loop(zero, keyPanelCount, one, [&](Value number) {
        Value first = k.mul(number, k.constant(panel));
        emitPanelProduct(k, query, count, depth, scratch, k.mul(number, k.mul(depth, k.constant(panel))), panel / lanes,
                         k.target.rowBlock, [&](Value row, int64_t v, Value tile) {
                           Value column = k.add(first, k.constant(v * lanes));
                           Value position = k.add(scoresAt, k.add(k.mul(row, stride), column));
                           emitRowStore(k, tile, scratch, position, k.sub(columns, column));
                         });
      });
      k.loop(zero, count, one, [&](Value row) {
        Value cell = k.cell(b.getF32Type());
        softmaxRow(scratch, k.add(scoresAt, k.mul(row, stride)), at[0], at[1], k.add(block, row), cell);
        memref::StoreOp::create(b, loc, memref::LoadOp::create(b, loc, cell), inverse, row);
      });
      Matrix weights{scratch, scoresAt, stride, one};
      k.loop(zero, valuePanelCount, one, [&](Value number) {
        Value first = k.mul(number, k.constant(valuePanel));
        Value offset = k.add(valuesAt, k.mul(number, k.mul(columns, k.constant(valuePanel))));
        emitPanelProduct(k, weights, count, columns, scratch, offset, valuePanel / lanes, rowBlock,
                         [&](Value row, int64_t v, Value tile) {
                           Value scale = vector::BroadcastOp::create(b, loc, tile.getType(),
                                                                     memref::LoadOp::create(b, loc, inverse, row));
                           Value column = k.add(first, k.constant(v * lanes));
                           Value position = k.add(results, k.add(k.mul(k.add(block, row), width), column));
                           Value result = orZero(arith::MulFOp::create(b, loc, tile, scale), scale);
                           emitRowStore(k, result, output, position, k.sub(width, column));
                         });
      });
    });
  });
}

LogicalResult AttentionLowering::run() {
  auto bind = [&](Value value, View &view) {
    if (value)
      view = k.broadcastView(k.bufferOf(value), k.sizesOf(value), {q[0], q[1], q[2], key[2]});
  };
  bind(op.getMask(), mask);
  bind(op.getFactor(), factor);
  SizeExpr scores = q[0] * q[1] * q[2] * key[2];
  k.setFlops(scores * (q[3] + value[3]) * SizeExpr(2) + scores * SizeExpr(5));
  // A guarded mask column has a run-time stride, which vectors cannot follow.
  if (element.isF32() && k.target.lanes > 1)
    emitPanels();
  else
    emitPlain();
  return success();
}

} // namespace

LogicalResult lowerAttention(KernelBuilder &builder, ds::AttentionOp op) {
  return AttentionLowering(builder, op).run();
}

} // namespace deepstride
