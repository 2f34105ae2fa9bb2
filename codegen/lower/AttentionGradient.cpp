// The kernel of ds.attention_gradient: one grid item is one head of keys and values of one batch row, with all heads of
// queries that share it. Keys and values are packed once, transposed for the scores and the weights' derivatives, keys
// as they lie for what the query gets. Then block after block of query rows, scores, softmax and derivatives stay in
// scratch; what keys and values get is added up in the result, block by block, head by head. So one thread makes each
// sum, in one order, and results do not depend on the number of threads.
#include "codegen/kernel/Views.h"
#include "codegen/lower/AttentionRows.h"
#include "codegen/tile/Gemm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
/// A matrix of `depth` rows in panels of `width` columns, the last of which may be cut.
struct Packed {
  Value buffer, offset, depth, columns;
  int64_t width;
  bool isWhole = false; // no panel is cut
};

/// Columns [begin, end) of a block of rows, which have weights, and the windows of its rows, if there are some.
struct Weighted {
  Value begin, count;
  std::optional<BlockWindow> window;
};

class AttentionGradientLowering : AttentionRows {
public:
  AttentionGradientLowering(KernelBuilder &k, ds::AttentionGradientOp op) : AttentionRows(k, op), op(op) {}
  LogicalResult run();

private:
  /// Each block of rows is added to what all keys and values got of those before: so many that the products cost more.
  static constexpr int64_t rowBlock = 48;

  /// One head of the operands and results, [batch, head] and [batch, group].
  struct Heads {
    Matrix query, gradient, ofQuery, keys, values, ofKeys, ofValues;
  };
  struct Panels {
    int64_t lanes, panel, rows;                      // of scores: columns of a panel, rows of a tile
    Packed keys, values, keyRows, queries, gradient; // the first two transposed
    Value buffer, weightsAt, slopesAt, rawAt, stride, inverse, factors;
  };

  void emitPlain();
  void emitPlainRow(const Heads &heads, ArrayRef<Value> at, Value weights, Value slopes, Value raw, Value factors);
  void emitPanels();
  void emitBlock(const Panels &p, const Heads &heads, ArrayRef<Value> head, Value block, Value count);
  void emitSlopes(const Panels &p, ArrayRef<Value> row, Value number, const Weighted &columns);
  void forEachGroup(llvm::function_ref<void(Value, Value)> body);
  Heads headsOf(Value batch, Value group);
  void takeHead(Heads &heads, Value batch, Value head);
  void clear(const Matrix &matrix, Value rows, Value columns);
  Value undo(OpBuilder &b, Value slope, ArrayRef<Value> given, Value raw, bool inside);
  Value share(OpBuilder &b, Value weight, Value factor);

  void pack(const Packed &to, const Matrix &source);
  int64_t tileRows(int64_t width);
  int64_t panelOf(const SizeExpr &features);
  /// The product of rows and a packed matrix from its row `from` on, over `depth` of those.
  void multiply(const Matrix &left, Value rows, const Packed &right, Value from, Value depth,
                llvm::function_ref<void(Value row, Value column, Value tile, Value mask)> sink);

  ds::AttentionGradientOp op;
  View query, keys, values, gradient, ofQuery, ofKey, ofValue;
};
} // namespace

AttentionGradientLowering::Heads AttentionGradientLowering::headsOf(Value batch, Value group) {
  Heads heads;
  heads.keys = headOf(keys, batch, group);
  heads.values = headOf(values, batch, group);
  heads.ofKeys = headOf(ofKey, batch, group);
  heads.ofValues = headOf(ofValue, batch, group);
  return heads;
}

void AttentionGradientLowering::takeHead(Heads &heads, Value batch, Value head) {
  heads.query = headOf(query, batch, head);
  heads.gradient = headOf(gradient, batch, head);
  heads.ofQuery = headOf(ofQuery, batch, head);
}

void AttentionGradientLowering::forEachGroup(llvm::function_ref<void(Value, Value)> body) {
  k.setGrid(q[0] * key[1], 1);
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, {q[0], key[1]});
    body(at[0], at[1]);
  });
}

/// What the steps before the softmax leave of the derivative with respect to its argument, for the product of query and
/// key. `given` has one mask for each step, or null, `raw` is the product where a softcap needs it.
Value AttentionGradientLowering::undo(OpBuilder &b, Value slope, ArrayRef<Value> given, Value raw, bool inside) {
  Location loc = k.loc;
  Value none = constant(b, 0);
  for (size_t i = steps.size(); i-- > 0;)
    switch (steps[i].kind) {
    case ds::ScoreStepKind::multiply: slope = arith::MulFOp::create(b, loc, slope, given[i]); break;
    case ds::ScoreStepKind::keep: slope = arith::SelectOp::create(b, loc, given[i], slope, none); break;
    case ds::ScoreStepKind::hide: slope = arith::SelectOp::create(b, loc, given[i], none, slope); break;
    case ds::ScoreStepKind::window:
      if (!inside)
        return none;
      break;
    default: break; // what is added
    }
  if (softcap) {
    Value one = constant(b, 1), scaled = arith::MulFOp::create(b, loc, raw, constant(b, scale));
    Value bounded = math::TanhOp::create(b, loc, arith::DivFOp::create(b, loc, scaled, constant(b, *softcap)));
    Value factor = arith::MulFOp::create(b, loc, arith::SubFOp::create(b, loc, one, bounded),
                                         arith::AddFOp::create(b, loc, one, bounded));
    slope = arith::MulFOp::create(b, loc, slope, factor);
  }
  return arith::MulFOp::create(b, loc, slope, constant(b, scale));
}

/// A weight of the softmax; with `guard`, 0 where its row is not a number.
Value AttentionGradientLowering::share(OpBuilder &b, Value weight, Value factor) {
  Value result = arith::MulFOp::create(b, k.loc, weight, factor);
  if (!guard)
    return result;
  Value isNan = arith::CmpFOp::create(b, k.loc, arith::CmpFPredicate::UNO, result, result);
  return arith::SelectOp::create(b, k.loc, isNan, constant(b, 0), result);
}

void AttentionGradientLowering::emitPlain() {
  Value one = k.constant(1), zero = k.constant(0), repeat = repeatOf();
  Value weights = k.scratchOf(element, key[2]), slopes = k.scratchOf(element, key[2]);
  Value raw = softcap ? k.scratchOf(element, key[2]) : Value();
  Value factors = dropout ? k.scratchOf(element, key[2]) : Value();
  auto clearPlain = [&](const Matrix &matrix, Value columns) {
    k.loop(zero, k.index(key[2]), one, [&](Value row) {
      k.loop(zero, columns, one,
             [&](Value i) { k.store(constant(k.b, 0), matrix.buffer, matrix.at(k, row, i), element); });
    });
  };
  forEachGroup([&](Value batch, Value group) {
    Heads heads = headsOf(batch, group);
    clearPlain(heads.ofKeys, k.index(q[3]));
    clearPlain(heads.ofValues, k.index(value[3]));
    k.loop(zero, repeat, one, [&](Value number) {
      Value head = k.add(k.mul(group, repeat), number);
      takeHead(heads, batch, head);
      k.loop(zero, k.index(q[2]), one,
             [&](Value row) { emitPlainRow(heads, {batch, head, row}, weights, slopes, raw, factors); });
    });
  });
}

void AttentionGradientLowering::emitPlainRow(const Heads &heads, ArrayRef<Value> at, Value weights, Value slopes,
                                             Value raw, Value factors) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Value one = k.constant(1), zero = k.constant(0), row = at[2];
  Value columns = k.index(key[2]), depth = k.index(q[3]), width = k.index(value[3]);
  auto load = [&](const Matrix &matrix, Value i, Value j) {
    return k.load(matrix.buffer, matrix.at(k, i, j), element);
  };
  auto scratch = [&](Value buffer, Value column) { return memref::LoadOp::create(b, loc, buffer, column).getResult(); };
  auto times = [&](Value x, Value y) { return arith::MulFOp::create(b, loc, x, y).getResult(); };
  auto dot = [&](const Matrix &left, const Matrix &right, Value column, Value count) {
    return plainSum(count, [&](Value i) { return times(load(left, row, i), load(right, column, i)); });
  };
  auto softmax = plainSoftmax(at, weights, allKeys(), noSoftmax(), [&](Value column) {
    Value product = dot(heads.query, heads.keys, column, depth);
    if (raw)
      memref::StoreOp::create(b, loc, product, raw, column);
    return product;
  });
  Value factor = inverseOf(softmax, /*isOnly=*/true);
  k.loop(zero, columns, one, [&](Value column) {
    memref::StoreOp::create(b, loc, share(b, scratch(weights, column), factor), weights, column);
    Value slope = dot(heads.gradient, heads.values, column, width);
    if (factors) {
      Value kept = keeps(b, placeOf(at), column);
      Value own = arith::SelectOp::create(b, loc, kept, constant(b, dropoutScale()), constant(b, 0));
      memref::StoreOp::create(b, loc, own, factors, column);
      slope = dropped(b, slope, own);
    }
    memref::StoreOp::create(b, loc, slope, slopes, column);
  });
  Value mean =
      plainSum(columns, [&](Value column) { return times(scratch(slopes, column), scratch(weights, column)); });
  for (const Segment &segment : segmentsOf(windowOf(at), allKeys()))
    k.loop(segment.begin, segment.end, one, [&](Value column) {
      bool isKept = segment.inside || !replacingStep();
      Value difference = arith::SubFOp::create(b, loc, scratch(slopes, column), mean);
      Value slope = times(scratch(weights, column), difference);
      Value product = raw && isKept ? scratch(raw, column) : Value();
      slope = isKept ? undo(b, slope, masksAt(at, column), product, segment.inside) : constant(b, 0);
      memref::StoreOp::create(b, loc, slope, slopes, column);
    });
  k.loop(zero, depth, one, [&](Value i) {
    Value sum =
        plainSum(columns, [&](Value column) { return times(scratch(slopes, column), load(heads.keys, column, i)); });
    k.store(sum, heads.ofQuery.buffer, heads.ofQuery.at(k, row, i), element);
  });
  auto add = [&](const Matrix &to, Value column, Value i, Value term) {
    k.store(arith::AddFOp::create(b, loc, load(to, column, i), term), to.buffer, to.at(k, column, i), element);
  };
  k.loop(zero, columns, one, [&](Value column) {
    Value slope = scratch(slopes, column), weight = scratch(weights, column);
    if (factors)
      weight = dropped(b, weight, scratch(factors, column));
    k.loop(zero, depth, one, [&](Value i) { add(heads.ofKeys, column, i, times(slope, load(heads.query, row, i))); });
    k.loop(zero, width, one,
           [&](Value i) { add(heads.ofValues, column, i, times(weight, load(heads.gradient, row, i))); });
  });
}

void AttentionGradientLowering::clear(const Matrix &matrix, Value rows, Value columns) {
  int64_t lanes = micro->lanes();
  Value zero = k.constant(0), step = k.constant(lanes), whole = k.mul(k.divide(columns, step), step);
  Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(VectorType::get({lanes}, element)));
  Value rest = lanesBelow(k, lanes, k.sub(columns, whole));
  k.loop(zero, rows, k.constant(1), [&](Value row) {
    auto store = [&](Value column, Value mask) { storeLanes(k, none, matrix.buffer, matrix.at(k, row, column), mask); };
    k.loop(zero, whole, step, [&](Value column) { store(column, {}); });
    store(whole, rest);
  });
}

void AttentionGradientLowering::pack(const Packed &to, const Matrix &source) {
  k.loop(k.constant(0), k.ceilDiv(to.columns, to.width), k.constant(1), [&](Value number) {
    Value offset = k.add(to.offset, k.mul(number, panelElements(k, *micro, to.depth, to.width)));
    emitPackPanel(k, *micro, source, element, to.depth, k.mul(number, k.constant(to.width)), to.columns, to.buffer,
                  offset, to.width);
  });
}

/// As many rows as registers hold beside a panel that is wider than the schedule's.
int64_t AttentionGradientLowering::tileRows(int64_t width) {
  ds::ScheduleAttr schedule = ds::scheduleOf(op);
  return width > schedule.getColumns() ? std::max<int64_t>(1, schedule.getRows() * 3 / 4) : schedule.getRows();
}

/// Panels of features are a few whole vectors, equally many, so that no column is wasted.
int64_t AttentionGradientLowering::panelOf(const SizeExpr &features) {
  constexpr int64_t most = 4;
  int64_t lanes = micro->lanes();
  auto fixed = features.constant();
  if (!fixed || *fixed <= 0)
    return ds::scheduleOf(op).getColumns();
  int64_t vectors = (*fixed + lanes - 1) / lanes, parts = (vectors + most - 1) / most;
  return (vectors + parts - 1) / parts * lanes;
}

void AttentionGradientLowering::multiply(const Matrix &left, Value rows, const Packed &right, Value from, Value depth,
                                         llvm::function_ref<void(Value, Value, Value, Value)> sink) {
  int64_t lanes = micro->lanes();
  Value perPanel = panelElements(k, *micro, right.depth, right.width);
  k.loop(k.constant(0), k.ceilDiv(right.columns, right.width), k.constant(1), [&](Value number) {
    Value first = k.mul(number, k.constant(right.width));
    Value offset = k.add(right.offset, k.add(k.mul(number, perPanel), k.mul(from, k.constant(right.width))));
    Panel panel{right.buffer, offset, right.width / lanes, {}};
    emitPanelProduct(k, *micro, left, rows, depth, panel, right.isWhole ? Value() : k.sub(right.columns, first),
                     tileRows(right.width), [&](Value row, int64_t v, Value tile, Value mask) {
                       sink(row, k.add(first, k.constant(v * lanes)), tile, mask);
                     });
  });
}

void AttentionGradientLowering::emitPanels() {
  ds::ScheduleAttr schedule = ds::scheduleOf(op);
  Panels p{micro->lanes(), schedule.getColumns(), schedule.getRows(), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  Value one = k.constant(1), zero = k.constant(0), repeat = repeatOf();
  Value rows = k.index(q[2]), columns = k.index(key[2]), depth = k.index(q[3]), width = k.index(value[3]);
  int64_t ofDepth = panelOf(q[3]), ofWidth = panelOf(value[3]);
  SizeExpr size = 0, stride = key[2] + SizeExpr(p.panel);
  auto take = [&](const SizeExpr &elements) {
    Value at = k.index(size);
    size = size + elements;
    return at;
  };
  Value keysAt = take(q[3] * stride), valuesAt = take(value[3] * stride);
  Value keyRowsAt = take(key[2] * (q[3] + SizeExpr(ofDepth)));
  Value queriesAt = take((q[3] + SizeExpr(ofDepth)) * SizeExpr(rowBlock));
  Value gradientAt = take((value[3] + SizeExpr(ofWidth)) * SizeExpr(rowBlock));
  p.weightsAt = take(stride * SizeExpr(rowBlock));
  p.slopesAt = take(stride * SizeExpr(rowBlock));
  p.rawAt = softcap ? take(stride * SizeExpr(rowBlock)) : Value();
  p.buffer = k.scratchOf(element, size);
  p.stride = k.index(stride);
  p.inverse = memref::AllocaOp::create(k.b, k.loc, MemRefType::get({rowBlock}, element));
  p.factors = dropout ? k.scratchOf(element, stride) : Value(); // of a row
  p.keys = {p.buffer, keysAt, depth, columns, p.panel};
  p.values = {p.buffer, valuesAt, width, columns, p.panel};
  p.keyRows = {p.buffer, keyRowsAt, columns, depth, ofDepth};
  forEachGroup([&](Value batch, Value group) {
    Heads heads = headsOf(batch, group);
    auto transposed = [](Matrix matrix) {
      std::swap(matrix.rowStride, matrix.columnStride);
      return matrix;
    };
    pack(p.keys, transposed(heads.keys));
    pack(p.values, transposed(heads.values));
    pack(p.keyRows, heads.keys);
    clear(heads.ofKeys, columns, depth);
    clear(heads.ofValues, columns, width);
    k.loop(zero, repeat, one, [&](Value number) {
      Value head = k.add(k.mul(group, repeat), number);
      k.loop(zero, rows, k.constant(rowBlock), [&](Value block) {
        Value count = k.minimum(k.constant(rowBlock), k.sub(rows, block));
        takeHead(heads, batch, head);
        for (Matrix *matrix : {&heads.query, &heads.gradient, &heads.ofQuery})
          matrix->offset = k.add(matrix->offset, k.mul(block, matrix->rowStride));
        p.queries = {p.buffer, queriesAt, count, depth, ofDepth};
        p.gradient = {p.buffer, gradientAt, count, width, ofWidth};
        emitBlock(p, heads, {batch, head}, block, count);
      });
    });
  });
}

/// `count` rows of a head from `block` on, where its matrices begin.
void AttentionGradientLowering::emitBlock(const Panels &p, const Heads &heads, ArrayRef<Value> head, Value block,
                                          Value count) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Value one = k.constant(1), zero = k.constant(0), columns = k.index(key[2]);
  Weighted weighted{zero, columns, std::nullopt};
  Value firstColumn = zero, endColumn = columns;
  if (bounds)
    weighted.window = emitWindows(rowBlock, head, block, count);
  if (weighted.window && replacingStep()) {
    firstColumn = loadCell(weighted.window->begin);
    endColumn = loadCell(weighted.window->end);
  }
  // Products with keys or values, of as many columns as whole panels from the one of `first` on.
  auto scores = [&](const Matrix &left, const Packed &right, Value first, Value end, ArrayRef<Value> targets) {
    Value number = k.divide(first, k.constant(right.width));
    Packed part = right;
    part.offset = k.add(right.offset, k.mul(number, panelElements(k, *micro, right.depth, right.width)));
    Value from = k.mul(number, k.constant(right.width));
    Value panels = k.ceilDiv(arith::MaxSIOp::create(b, loc, k.sub(end, from), zero), right.width);
    part.columns = k.mul(panels, k.constant(right.width));
    part.isWhole = true;
    multiply(left, count, part, zero, right.depth, [&](Value row, Value column, Value tile, Value mask) {
      for (Value target : targets)
        storeLanes(k, tile, p.buffer, k.add(target, k.add(k.mul(row, p.stride), k.add(from, column))), mask);
    });
  };
  scores(heads.query, p.keys, firstColumn, endColumn,
         softcap ? SmallVector<Value>{p.weightsAt, p.rawAt} : SmallVector<Value>{p.weightsAt});
  View lines{p.buffer, 0, {Axis{key[2], 1, true, std::nullopt}}};
  k.loop(zero, count, one, [&](Value row) {
    Value offset = k.add(p.weightsAt, k.mul(row, p.stride)), place[] = {head[0], head[1], k.add(block, row)};
    RunningSoftmax softmax = weighted.window
                                 ? softmaxWindow(lines, offset, place, row, *weighted.window, allKeys(), noSoftmax())
                                 : softmaxRow(lines, offset, place, allKeys(), noSoftmax());
    memref::StoreOp::create(b, loc, inverseOf(softmax, /*isOnly=*/true), p.inverse, row);
  });
  if (weighted.window) {
    spread(lines, p.weightsAt, p.stride, count, *weighted.window, allKeys());
    weighted.begin = loadCell(weighted.window->begin);
    weighted.count = arith::MaxSIOp::create(b, loc, k.sub(loadCell(weighted.window->end), weighted.begin), zero);
  }
  scores(heads.gradient, p.values, weighted.begin, k.add(weighted.begin, weighted.count), {p.slopesAt});
  k.loop(zero, count, one, [&](Value row) { emitSlopes(p, {head[0], head[1], k.add(block, row)}, row, weighted); });

  Value slopesAt = k.add(p.slopesAt, weighted.begin), weightsAt = k.add(p.weightsAt, weighted.begin);
  multiply({p.buffer, slopesAt, p.stride, one}, count, p.keyRows, weighted.begin, weighted.count,
           [&](Value row, Value column, Value tile, Value mask) {
             storeLanes(k, tile, heads.ofQuery.buffer, heads.ofQuery.at(k, row, column), mask);
           });
  auto accumulate = [&](Value from, const Packed &right, const Matrix &source, const Matrix &to) {
    pack(right, source);
    multiply({p.buffer, from, one, p.stride}, weighted.count, right, zero, count,
             [&](Value row, Value column, Value tile, Value mask) {
               Value place = to.at(k, k.add(weighted.begin, row), column);
               Value before = loadLanes(k, cast<VectorType>(tile.getType()), to.buffer, place, mask);
               storeLanes(k, arith::AddFOp::create(b, loc, before, tile), to.buffer, place, mask);
             });
  };
  accumulate(slopesAt, p.queries, heads.query, heads.ofKeys);
  accumulate(weightsAt, p.gradient, heads.gradient, heads.ofValues);
}

/// Makes exponentials of a row its weights, and the weights' derivatives those of the products of query and keys.
void AttentionGradientLowering::emitSlopes(const Panels &p, ArrayRef<Value> row, Value number,
                                           const Weighted &columns) {
  OpBuilder &b = k.b;
  AffineMap all = AffineMap::getMultiDimIdentityMap(1, b.getContext()), none = AffineMap::get(1, 0, b.getContext());
  View lines{p.buffer, 0, {Axis{key[2], 1, true, std::nullopt}}};
  Value start = k.mul(number, p.stride), end = k.add(columns.begin, columns.count);
  Value weightsAt = k.add(p.weightsAt, start), slopesAt = k.add(p.slopesAt, start);
  Segment whole{columns.begin, end, true};
  Value weights = lineOf(lines, weightsAt, whole), slopes = lineOf(lines, slopesAt, whole);
  Value factor = memref::LoadOp::create(b, k.loc, p.inverse, number);
  linalg::GenericOp::create(b, k.loc, ValueRange{weights}, ValueRange{weights}, {all, all},
                            {utils::IteratorType::parallel}, [&](OpBuilder &body, Location loc, ValueRange v) {
                              linalg::YieldOp::create(body, loc, share(body, v[0], factor));
                            });
  if (dropout) {
    fillFactors(p.factors, row, whole);
    dropLine(slopes, lineOf({p.factors, 0, lines.axes}, k.constant(0), whole));
  }
  Value cell = k.cell(element);
  storeCell(constant(b, 0), cell);
  linalg::GenericOp::create(b, k.loc, ValueRange{slopes, weights}, ValueRange{cell}, {all, all, none},
                            {utils::IteratorType::reduction}, [&](OpBuilder &body, Location loc, ValueRange v) {
                              Value product = arith::MulFOp::create(body, loc, v[0], v[1]);
                              linalg::YieldOp::create(body, loc,
                                                      arith::AddFOp::create(body, loc, v[2], product).getResult());
                            });
  Value mean = loadCell(cell);
  SmallVector<Segment> segments = {whole};
  if (columns.window) {
    auto bound = [&](Value cells) { return memref::LoadOp::create(b, k.loc, cells, number).getResult(); };
    Value first = bound(columns.window->firsts), last = bound(columns.window->ends);
    segments = {{columns.begin, first, false}, {first, last, true}, {last, end, false}};
  }
  for (const Segment &segment : segments) {
    if (!segment.inside && replacingStep()) {
      fillRow(p.buffer, slopesAt, segment.begin, segment.end, constant(b, 0));
      continue;
    }
    Value line = lineOf(lines, slopesAt, segment);
    SmallVector<Value> inputs = {line, lineOf(lines, weightsAt, segment)};
    SmallVector<AffineMap> maps = {all, all};
    if (softcap) {
      inputs.push_back(lineOf(lines, k.add(p.rawAt, start), segment));
      maps.push_back(all);
    }
    SmallVector<bool> reads; // what is added changes no slope
    for (auto [step, mask] : llvm::zip_equal(steps, masks)) {
      reads.push_back(step.kind == ds::ScoreStepKind::multiply || step.kind == ds::ScoreStepKind::keep ||
                      step.kind == ds::ScoreStepKind::hide);
      if (!reads.back())
        continue;
      inputs.push_back(lineOf(mask, k.offsetAt(mask, {0, 1, 2}, row), segment));
      maps.push_back(mask.axes[3].present ? all : none);
    }
    maps.push_back(all);
    linalg::GenericOp::create(
        b, k.loc, inputs, ValueRange{line}, maps, {utils::IteratorType::parallel},
        [&](OpBuilder &body, Location loc, ValueRange v) {
          SmallVector<Value> given;
          size_t next = softcap ? 3 : 2;
          for (auto [step, isRead] : llvm::zip_equal(steps, reads))
            given.push_back(isRead ? fromStorage(body, loc, v[next++], k.elementOf(step.mask)) : Value());
          Value slope = arith::MulFOp::create(body, loc, v[1], arith::SubFOp::create(body, loc, v[0], mean));
          linalg::YieldOp::create(body, loc, undo(body, slope, given, softcap ? v[2] : Value(), segment.inside));
        });
  }
  if (dropout) // what is left of them is what values were multiplied with
    dropLine(weights, lineOf({p.factors, 0, lines.axes}, k.constant(0), whole));
}

LogicalResult AttentionGradientLowering::run() {
  auto kernel = scheduledKernel(k, op, {element, element, element}, /*isPacked=*/false);
  if (failed(kernel))
    return failure();
  micro = std::move(*kernel);
  if (micro && (!isa<VectorKernel>(*micro) || micro->interleave != 1))
    return op.emitOpError("expects a schedule by multiply_add");
  for (auto [operand, view] : {std::pair(op.getQuery(), &query), std::pair(op.getKey(), &keys),
                               std::pair(op.getValue(), &values), std::pair(op.getGradient(), &gradient)}) {
    auto found = operandView(k, operand);
    if (!found)
      return op.emitOpError("shares a kernel with more than windows of its operands that strides reach");
    *view = *found;
  }
  for (auto [result, view] :
       {std::pair(op.getOfQuery(), &ofQuery), std::pair(op.getOfKey(), &ofKey), std::pair(op.getOfValue(), &ofValue)}) {
    auto found = resultView(k, result);
    if (!found || !found->axes[3].stride.isConstant(1))
      return op.emitOpError("expects a kernel that yields its results, and does not move their features");
    *view = *found;
  }
  if (failed(findMasks(op, 4)))
    return failure();
  prepareDropout();
  SizeExpr scores = q[0] * q[1] * q[2] * key[2];
  k.setFlops(scores * (q[3] * SizeExpr(3) + value[3] * SizeExpr(2)) * SizeExpr(2) + scores * SizeExpr(10));
  if (micro)
    emitPanels();
  else
    emitPlain();
  return success();
}

LogicalResult lowerAttentionGradient(KernelBuilder &builder, ds::AttentionGradientOp op) {
  return AttentionGradientLowering(builder, op).run();
}

} // namespace deepstride
