// Attention whose scores and weights are quantized: two products, a softmax between them, and elementwise ops before,
// between and behind them. One grid item is one head. A thread makes keys and values of what is in memory, or of rows
// that it puts together as ds.attention's kernel does, and packs them, then computes a few rows at a time, of which
// scores and weights never leave scratch. What is done to an element and in which order is what kernels of their own
// do, so that results have the same bits.
#include "codegen/lower/QuantizedAttention.h"

#include "codegen/kernel/JoinedHeads.h"
#include "codegen/kernel/PointwiseOps.h"
#include "codegen/kernel/Views.h"
#include "codegen/lower/Rows.h"
#include "codegen/tile/Gemm.h"

using namespace mlir;

namespace deepstride {

namespace {

/// Neighbours along the one axis of a view, from a place of its buffer on.
struct Line {
  View view;
  Value start;
};

/// What a product reads: a window of memory or rows that are computed, and the elementwise ops behind it.
struct Operand {
  Value value, source;                 // behind and before the steps
  ds::ShownHeads shown;                // of which the source is made
  View view;                           // of the source, with its groups for its heads; where it is in memory
  std::optional<JoinedHeads> joined;   // keys and values
  std::optional<RowSource> computed;   // queries
  SmallVector<Operation *> steps = {}; // in order
  Value output = {};                   // of values that are yielded, a head behind the other: their scratch
};

class QuantizedAttention {
public:
  QuantizedAttention(KernelBuilder &k, ds::SoftmaxProducts ops)
      : k(k), ops(ops), query(k.sizesOf(ops.scores.getLhs())), result(k.sizesOf(ops.weighted.getResult())),
        batch(ArrayRef(result).drop_back(2)), keyCount(k.sizesOf(ops.scores.getResult()).back()) {}
  LogicalResult run();

private:
  /// Elementwise ops of a row between two ops of the kernel.
  struct Steps {
    SmallVector<Operation *> ops;
    llvm::SetVector<Value> operands; // that none of them gives
  };
  static bool isStep(Operation *op) {
    auto element = dyn_cast_or_null<ds::PerElement>(op);
    return element && element.isPointwise() && !element.scannedOperand() && !isa<ds::ConstantOp>(op);
  }
  std::optional<Operand> operandOf(Value value, bool isQuery);
  Steps stepsBehind(Value value);
  LogicalResult verify(const Steps &steps, Value from, bool readsMemory);
  FailureOr<std::unique_ptr<MicroKernel>> kernelOf(ds::MatmulOp op);
  void emit();
  void emitRows(ArrayRef<Value> head, Value first, Value count);

  Line lineAt(Value buffer, Value start, const SizeExpr &length) {
    return {{buffer, 0, {Axis{length, 1, true, std::nullopt}}}, start};
  }
  Line lineOf(const View &view, unsigned axis, Value start) { return {{view.buffer, 0, {view.axes[axis]}}, start}; }
  void emitLine(const Line &target, Value value, ArrayRef<Operation *> steps, ArrayRef<Value> operands,
                ArrayRef<Line> lines);
  Value headOffset(const View &view, ArrayRef<Value> head) {
    return k.offsetAt(view, llvm::to_vector(llvm::seq<unsigned>(0, head.size())), head);
  }
  void reserve(Operand &operand);
  Matrix joined(Operand &operand, Value scratch, Value place, const HeadGroup &group);
  Matrix whole(Operand &operand, Value scratch, const HeadGroup &group);
  Matrix rowsOf(ArrayRef<Value> head, Value first, Value count);
  /// What holds all columns of a matrix as panels.
  Value panelsFor(const MicroKernel &micro, const SizeExpr &depth, const SizeExpr &columns, int64_t width) {
    return k.scratchOf(storageType(micro.panel), panelSpace(micro, depth, 1) * (columns + SizeExpr(width)));
  }
  const SizeExpr &depthOf(ds::MatmulOp op) const { return op == ops.scores ? query.back() : keyCount; }
  void pack(const MicroKernel &micro, ds::MatmulOp op, const Matrix &matrix, Value panels);
  void multiply(const MicroKernel &micro, ds::MatmulOp op, const Matrix &rows, Value count, Value panels,
                Value products, Value stride);

  KernelBuilder &k;
  ds::SoftmaxProducts ops;
  SizeVector query, result, batch;
  SizeExpr keyCount; // of weights, too, however that size is written: a run refuses others
  std::unique_ptr<MicroKernel> scoring, weighting;
  Operand queries, keys, values;
  Steps ofScores, ofWeights, ofResult;
  int64_t repeat = 1; // heads that share keys and values
  Value made;         // what is stored, before a transpose moves it
  View target;
  Value computedRows, queryRows, sums, weights, left, products, keyPanels, valuePanels; // scratch
  Value scoreStride, productStride;
};

} // namespace

std::optional<Operand> QuantizedAttention::operandOf(Value value, bool isQuery) {
  Operand operand;
  operand.value = value;
  while (isStep(value.getDefiningOp())) {
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

QuantizedAttention::Steps QuantizedAttention::stepsBehind(Value value) {
  Steps steps;
  for (Operation *op : k.ops())
    if (isStep(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
          return operand == value || llvm::is_contained(steps.ops, operand.getDefiningOp());
        }))
      steps.ops.push_back(op);
  steps.operands.insert(value);
  for (Operation *op : steps.ops)
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp<ds::ConstantOp>() && !llvm::is_contained(steps.ops, operand.getDefiningOp()))
        steps.operands.insert(operand);
  return steps;
}

LogicalResult QuantizedAttention::verify(const Steps &steps, Value from, bool readsMemory) {
  for (Operation *op : steps.ops)
    if (SizeVector sizes = k.sizesOf(op->getResult(0));
        sizes != k.sizesOf(from) && (from != ops.scores.getResult() || sizes != k.sizesOf(ops.softmax.getResult())))
      return op->emitOpError("expects results as large as what it follows in its kernel");
  for (Value operand : steps.operands)
    if (operand != from && !(readsMemory && isa<BlockArgument>(operand)))
      return from.getDefiningOp()->emitOpError("is followed by ops of what its kernel does not have in memory");
  return success();
}

FailureOr<std::unique_ptr<MicroKernel>> QuantizedAttention::kernelOf(ds::MatmulOp op) {
  ds::ProductTypes types{k.elementOf(op.getLhs()), k.elementOf(op.getRhs()), k.elementOf(op.getResult())};
  auto kernel = scheduledKernel(k, op, types, /*isPacked=*/false);
  if (failed(kernel))
    return failure();
  if (!*kernel || !llvm::isa<VectorKernel>(**kernel) || op.getTranspose()[0])
    return op.emitOpError("shares a kernel with a softmax, and has no schedule of vectors, or moves its left operand");
  return kernel;
}

LogicalResult QuantizedAttention::run() {
  auto inner = kernelOf(ops.scores);
  if (failed(inner))
    return failure();
  auto outer = kernelOf(ops.weighted);
  if (failed(outer))
    return failure();
  scoring = std::move(*inner);
  weighting = std::move(*outer);
  for (auto [operand, value] : {std::pair(&queries, ops.scores.getLhs()), std::pair(&keys, ops.scores.getRhs()),
                                std::pair(&values, ops.weighted.getRhs())}) {
    auto found = operandOf(value, /*isQuery=*/operand == &queries);
    if (!found)
      return ops.softmax.emitOpError("shares a kernel with products of what is neither a window of memory nor rows");
    if (ArrayRef(k.sizesOf(value)).drop_back(2) != ArrayRef(batch))
      return ops.softmax.emitOpError("shares a kernel with products whose operands broadcast");
    *operand = std::move(*found);
  }
  repeat = keys.shown.repeat;
  if (values.shown.repeat != repeat)
    return ops.softmax.emitOpError("shares a kernel with keys that other heads share than values");
  ofScores = stepsBehind(ops.scores.getResult());
  ofWeights = stepsBehind(ops.softmax.getResult());
  ofResult = stepsBehind(ops.weighted.getResult());
  if (failed(verify(ofScores, ops.scores.getResult(), /*readsMemory=*/true)) ||
      failed(verify(ofWeights, ops.softmax.getResult(), /*readsMemory=*/false)) ||
      failed(verify(ofResult, ops.weighted.getResult(), /*readsMemory=*/false)))
    return failure();
  SizeVector ofValues = k.sizesOf(ops.weighted.getRhs());
  bool mayRepeat = k.sizesOf(ops.softmax.getResult()) != k.sizesOf(ops.scores.getResult());
  if (mayRepeat && ofValues[batch.size() + (ops.weighted.getTranspose()[1] ? 1 : 0)] != keyCount)
    return ops.weighted.emitOpError("shares a kernel with scores of another number of keys");
  // A row of scores stands where its weights will.
  SmallVector<unsigned> results; // but for keys and values
  for (auto [number, value] : llvm::enumerate(k.yielded()))
    if (!(keys.joined && keys.joined->has(value)) && !(values.joined && values.joined->has(value)) &&
        !(values.output && value == values.value))
      results.push_back(static_cast<unsigned>(number));
  if (results.size() != 1 || k.elementOf(ops.softmax.getResult()) != computeType(k.elementOf(ops.softmax.getResult())))
    return ops.softmax.emitOpError("shares a kernel that yields more than its result, its keys and its values, or "
                                   "rounds its weights");
  Value yielded = k.yielded()[results.front()];
  auto transpose = yielded.getDefiningOp<ds::TransposeOp>();
  made = transpose ? transpose.getInput() : yielded;
  if (made != (ofResult.ops.empty() ? Value(ops.weighted.getResult()) : ofResult.ops.back()->getResult(0)))
    return ops.weighted.emitOpError("shares a kernel that yields something else");
  View stored = k.broadcastView(k.outputBuffer(results.front()), k.sizesOf(yielded), k.sizesOf(yielded));
  target = stored;
  if (transpose)
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      target.axes[static_cast<size_t>(from)] = stored.axes[to];
  emit();
  return success();
}

/// Makes a line of `value` by the ops, of lines of `operands`.
void QuantizedAttention::emitLine(const Line &target, Value value, ArrayRef<Operation *> steps,
                                  ArrayRef<Value> operands, ArrayRef<Line> lines) {
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  MLIRContext *context = k.b.getContext();
  auto open = [&](const Line &line) {
    maps.push_back(line.view.axes[0].present ? AffineMap::getMultiDimIdentityMap(1, context)
                                             : AffineMap::get(1, 0, context));
    return k.memrefOf(line.view, line.start, {0});
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

void QuantizedAttention::reserve(Operand &operand) {
  if (operand.joined && operand.steps.empty())
    operand.joined->reserve(/*isShared=*/repeat > 1);
  else if (operand.joined)
    operand.joined->reservePieces(/*isShared=*/repeat > 1);
}

/// Rows of a group that are put together: where they lie, or, behind steps, from `place` of the scratch on.
Matrix QuantizedAttention::joined(Operand &operand, Value scratch, Value place, const HeadGroup &group) {
  Value zero = k.constant(0), one = k.constant(1), first = zero;
  if (operand.steps.empty())
    return operand.joined->emit(group.at[0], group.at[1], group.isOwner);
  SizeExpr width = k.sizesOf(operand.shown.rows).back();
  Value apart = k.index(width);
  for (const JoinedHeads::Piece &piece : operand.joined->emitPieces(group.at[0], group.at[1], group.isOwner)) {
    k.loop(zero, piece.count, one, [&](Value number) {
      Value from = k.add(piece.rows.offset, k.mul(number, piece.rows.rowStride));
      emitLine(lineAt(scratch, k.add(place, k.mul(k.add(first, number), apart)), width), operand.value, operand.steps,
               operand.source, lineAt(piece.rows.buffer, from, width));
    });
    first = k.add(first, piece.count);
  }
  return {scratch, place, apart, one};
}

/// All of an operand of a head: in memory, or made in scratch along the axis whose elements are neighbours.
Matrix QuantizedAttention::whole(Operand &operand, Value scratch, const HeadGroup &group) {
  unsigned row = static_cast<unsigned>(group.at.size()), column = row + 1;
  Value one = k.constant(1), place = k.constant(0);
  SizeVector sizes = k.sizesOf(operand.value);
  if (operand.output)
    place = k.mul(k.linearize(group.at, batch), k.index(sizes[row] * sizes[column]));
  if (operand.joined) {
    Matrix rows = joined(operand, scratch, place, group);
    if (operand.shown.isTurned)
      std::swap(rows.rowStride, rows.columnStride);
    return rows;
  }
  const View &view = operand.view;
  Value offset = headOffset(view, group.at);
  Value rowStride = k.strideOf(view.axes[row]), columnStride = k.strideOf(view.axes[column]);
  if (operand.steps.empty())
    return {view.buffer, offset, rowStride, columnStride};
  bool isTurned = !operand.output && !view.axes[column].stride.isConstant(1) && view.axes[row].stride.isConstant(1);
  const SizeExpr &length = sizes[isTurned ? row : column];
  Value apart = k.index(length);
  k.loop(k.constant(0), k.index(sizes[isTurned ? column : row]), one, [&](Value number) {
    Value start = k.add(offset, k.mul(number, isTurned ? columnStride : rowStride));
    emitLine(lineAt(scratch, k.add(place, k.mul(number, apart)), length), operand.value, operand.steps, operand.source,
             lineOf(view, isTurned ? row : column, start));
  });
  return isTurned ? Matrix{scratch, place, one, apart} : Matrix{scratch, place, apart, one};
}

/// Rows of the queries of a head, whose elements are neighbours where steps need them to be.
Matrix QuantizedAttention::rowsOf(ArrayRef<Value> head, Value first, Value count) {
  unsigned row = static_cast<unsigned>(head.size()), column = row + 1;
  Value one = k.constant(1), zero = k.constant(0), depth = k.index(query.back());
  if (queries.computed) {
    SmallVector<Value> at(head);
    at.push_back(first);
    queries.computed->emit(at, count, computedRows, zero);
    if (queries.steps.empty())
      return {computedRows, zero, depth, one};
    k.loop(zero, count, one, [&](Value number) {
      Value place = k.mul(number, depth);
      emitLine(lineAt(queryRows, place, query.back()), queries.value, queries.steps, queries.source,
               lineAt(computedRows, place, query.back()));
    });
    return {queryRows, zero, depth, one};
  }
  const View &view = queries.view;
  Value rowStride = k.strideOf(view.axes[row]);
  Value offset = k.add(headOffset(view, head), k.mul(first, rowStride));
  if (!queryRows)
    return {view.buffer, offset, rowStride, k.strideOf(view.axes[column])};
  k.loop(zero, count, one, [&](Value number) {
    emitLine(lineAt(queryRows, k.mul(number, depth), query.back()), queries.value, queries.steps, queries.source,
             lineOf(view, column, k.add(offset, k.mul(number, rowStride))));
  });
  return {queryRows, zero, depth, one};
}

void QuantizedAttention::pack(const MicroKernel &micro, ds::MatmulOp op, const Matrix &matrix, Value panels) {
  Matrix source = matrix;
  if (op.getTranspose()[1])
    std::swap(source.rowStride, source.columnStride);
  int64_t width = ds::scheduleOf(op).getColumns();
  Value depth = k.index(depthOf(op)), columns = k.index(k.sizesOf(op.getResult()).back());
  k.loop(k.constant(0), k.ceilDiv(columns, width), k.constant(1), [&](Value number) {
    emitPackPanel(k, micro, source, k.elementOf(op.getRhs()), depth, k.mul(number, k.constant(width)), columns, panels,
                  k.mul(number, panelElements(k, micro, depth, width)), width);
  });
}

/// Rows of the product, as long as whole panels.
void QuantizedAttention::multiply(const MicroKernel &micro, ds::MatmulOp op, const Matrix &rows, Value count,
                                  Value panels, Value products, Value stride) {
  int64_t width = ds::scheduleOf(op).getColumns(), lanes = micro.lanes();
  Value depth = k.index(depthOf(op)), columns = k.index(k.sizesOf(op.getResult()).back());
  k.loop(k.constant(0), k.ceilDiv(columns, width), k.constant(1), [&](Value number) {
    Value first = k.mul(number, k.constant(width));
    Panel panel{panels, k.mul(number, panelElements(k, micro, depth, width)), width / lanes, {}};
    emitPanelProduct(k, micro, rows, count, depth, panel, /*columns=*/{}, ds::scheduleOf(op).getRows(),
                     [&](Value row, int64_t vector, Value tile, Value) {
                       Value column = k.add(first, k.constant(vector * lanes));
                       storeLanes(k, toStorage(k.b, k.loc, tile, k.elementOf(op.getResult())), products,
                                  k.add(k.mul(row, stride), column), {});
                     });
  });
}

void QuantizedAttention::emit() {
  int64_t rowBlock = 4 * ds::scheduleOf(ops.scores).getRows();
  int64_t keyWidth = ds::scheduleOf(ops.scores).getColumns(), width = ds::scheduleOf(ops.weighted).getColumns();
  SizeExpr rows(rowBlock), scoreSize = keyCount + SizeExpr(keyWidth), productSize = result.back() + SizeExpr(width);
  auto scratchFor = [&](Value value, const SizeExpr &elements) {
    return k.scratchOf(storageType(k.elementOf(value)), elements);
  };
  auto wholeFor = [&](const Operand &operand) {
    SizeVector sizes = k.sizesOf(operand.value);
    if (operand.output)
      return operand.output;
    return operand.steps.empty() ? Value() : scratchFor(operand.value, sizes[batch.size()] * sizes.back());
  };
  SizeExpr scores = product(batch) * result[batch.size()] * keyCount;
  k.setFlops(scores * (query.back() + result.back()) * SizeExpr(2) + scores * SizeExpr(5));
  k.setGrid(product(batch), 1);
  Value keyScratch = wholeFor(keys), valueScratch = wholeFor(values);
  keyPanels = panelsFor(*scoring, query.back(), keyCount, keyWidth);
  valuePanels = panelsFor(*weighting, keyCount, result.back(), width);
  reserve(keys);
  reserve(values);
  if (queries.computed) {
    queries.computed->reserve();
    computedRows = scratchFor(queries.source, query.back() * rows);
  }
  bool isInMemory = queries.computed || scoring->readsStrided() || queries.view.axes.back().stride.isConstant(1);
  if (!queries.steps.empty() || !isInMemory)
    queryRows = scratchFor(queries.value, query.back() * rows);
  sums = scratchFor(ops.scores.getResult(), scoreSize * rows);
  weights = scratchFor(ops.softmax.getResult(), scoreSize * rows);
  Value multiplied = ops.weighted.getLhs();
  left = storageType(k.elementOf(multiplied)) == storageType(k.elementOf(ops.softmax.getResult()))
             ? weights
             : scratchFor(multiplied, scoreSize * rows);
  products = scratchFor(ops.weighted.getResult(), productSize * rows);
  scoreStride = k.index(scoreSize);
  productStride = k.index(productSize);
  Value rowCount = k.index(result[batch.size()]), most = k.constant(rowBlock);
  SizeVector groups = batch;
  if (repeat > 1)
    groups[1] = k.sizesOf(keys.shown.rows)[1];
  Value shared = repeat > 1 ? k.constant(repeat) : Value();
  forEachHeadGroup(k, groups, shared, [&](const HeadGroup &group) {
    pack(*scoring, ops.scores, whole(keys, keyScratch, group), keyPanels);
    pack(*weighting, ops.weighted, whole(values, valueScratch, group), valuePanels);
    auto emitHead = [&](ArrayRef<Value> head) {
      k.loop(k.constant(0), rowCount, most,
             [&](Value first) { emitRows(head, first, k.minimum(most, k.sub(rowCount, first))); });
    };
    if (!shared)
      return emitHead(group.at);
    k.loop(group.from, group.to, k.constant(1),
           [&](Value number) { emitHead({group.at[0], k.add(k.mul(group.at[1], shared), number)}); });
  });
}

/// A few rows of a head, from their scores to what is stored.
void QuantizedAttention::emitRows(ArrayRef<Value> head, Value first, Value count) {
  Value one = k.constant(1), zero = k.constant(0);
  multiply(*scoring, ops.scores, rowsOf(head, first, count), count, keyPanels, sums, scoreStride);
  SizeExpr scoreSize = keyCount + SizeExpr(ds::scheduleOf(ops.scores).getColumns());
  int64_t rowBlock = 4 * ds::scheduleOf(ops.scores).getRows();
  RowSpace space(k, {SizeExpr(rowBlock), keyCount}, {1});
  View rows{
      weights, 0, {Axis{SizeExpr(rowBlock), scoreSize, true, std::nullopt}, Axis{keyCount, 1, true, std::nullopt}}};
  SizeVector shape = k.sizesOf(ops.scores.getResult());
  k.loop(zero, count, one, [&](Value row) {
    Value place = k.mul(row, scoreStride);
    SmallVector<Value> at(head);
    at.push_back(k.add(first, row));
    SmallVector<Line> lines;
    for (Value operand : ofScores.operands) {
      if (operand == ops.scores.getResult()) {
        lines.push_back(lineAt(sums, place, keyCount));
        continue;
      }
      View view = k.broadcastView(k.bufferOf(operand), k.sizesOf(operand), shape);
      lines.push_back(lineOf(view, static_cast<unsigned>(at.size()), headOffset(view, at)));
    }
    Line line = lineAt(weights, place, keyCount);
    emitLine(line, ops.softmax.getInput(), ofScores.ops, ofScores.operands.getArrayRef(), lines);
    emitSoftmaxRow(k, space, ops.softmax, rows, rows, {row});
    if (!ofWeights.ops.empty())
      emitLine(lineAt(left, place, keyCount), ops.weighted.getLhs(), ofWeights.ops, ops.softmax.getResult(), line);
  });
  multiply(*weighting, ops.weighted, {left, zero, scoreStride, one}, count, valuePanels, products, productStride);
  k.loop(zero, count, one, [&](Value row) {
    SmallVector<Value> at(head);
    at.push_back(k.add(first, row));
    Line line = lineOf(target, static_cast<unsigned>(at.size()), headOffset(target, at));
    emitLine(line, made, ofResult.ops, ops.weighted.getResult(),
             lineAt(products, k.mul(row, productStride), result.back()));
  });
}

LogicalResult lowerQuantizedAttention(KernelBuilder &builder, ds::SoftmaxProducts ops) {
  return QuantizedAttention(builder, ops).run();
}

} // namespace deepstride
