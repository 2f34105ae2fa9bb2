// Attention whose scores and weights are quantized: two products, a softmax between them, and elementwise ops before,
// between and behind them. One grid item is one head. A thread makes keys and values of what is in memory and packs
// them, then computes a few rows at a time, of which scores and weights never leave scratch. What is done to an element
// and in which order is what kernels of their own do, so that results have the same bits.
#include "codegen/lower/QuantizedAttention.h"

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

/// What a product reads: a window of memory, and the elementwise ops behind it.
struct Operand {
  Value value, source;
  View view;
  SmallVector<Operation *> steps; // in order
};

class QuantizedAttention {
public:
  QuantizedAttention(KernelBuilder &k, ds::SoftmaxProducts ops)
      : k(k), ops(ops), query(k.sizesOf(ops.scores.getLhs())), result(k.sizesOf(ops.weighted.getResult())),
        batch(ArrayRef(result).drop_back(2)), keyCount(k.sizesOf(ops.softmax.getResult()).back()) {}
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
  std::optional<Operand> operandOf(Value value);
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
  Matrix whole(const Operand &operand, Value scratch, ArrayRef<Value> head);
  Matrix rowsOf(const Operand &operand, Value scratch, ArrayRef<Value> head, Value first, Value count);
  /// What holds all columns of a matrix as panels.
  Value panelsFor(const MicroKernel &micro, const SizeExpr &depth, const SizeExpr &columns, int64_t width) {
    return k.scratchOf(storageType(micro.panel), panelSpace(micro, depth, 1) * (columns + SizeExpr(width)));
  }
  void pack(const MicroKernel &micro, ds::MatmulOp op, const Matrix &matrix, Value panels);
  void multiply(const MicroKernel &micro, ds::MatmulOp op, const Matrix &rows, Value count, Value panels,
                Value products, Value stride);

  KernelBuilder &k;
  ds::SoftmaxProducts ops;
  SizeVector query, result, batch;
  SizeExpr keyCount;
  std::unique_ptr<MicroKernel> scoring, weighting;
  Operand queries, keys, values;
  Steps ofScores, ofWeights, ofResult;
  Value made; // what is stored, before a transpose moves it
  View target;
  Value queryRows, sums, weights, left, products, keyPanels, valuePanels; // scratch
  Value scoreStride, productStride;
};

} // namespace

std::optional<Operand> QuantizedAttention::operandOf(Value value) {
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
  auto view = operandView(k, value);
  if (!view)
    return std::nullopt;
  operand.view = *view;
  operand.source = value;
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
    if (k.sizesOf(op->getResult(0)) != k.sizesOf(from))
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
  auto found = {operandOf(ops.scores.getLhs()), operandOf(ops.scores.getRhs()), operandOf(ops.weighted.getRhs())};
  if (!llvm::all_of(found, [](const auto &operand) { return operand.has_value(); }))
    return ops.softmax.emitOpError("shares a kernel with products of what is no window of memory");
  queries = *found.begin()[0];
  keys = *found.begin()[1];
  values = *found.begin()[2];
  for (const Operand &operand : {queries, keys, values})
    if (ArrayRef(k.sizesOf(operand.value)).drop_back(2) != ArrayRef(batch))
      return ops.softmax.emitOpError("shares a kernel with products whose operands broadcast");
  ofScores = stepsBehind(ops.scores.getResult());
  ofWeights = stepsBehind(ops.softmax.getResult());
  ofResult = stepsBehind(ops.weighted.getResult());
  if (failed(verify(ofScores, ops.scores.getResult(), /*readsMemory=*/true)) ||
      failed(verify(ofWeights, ops.softmax.getResult(), /*readsMemory=*/false)) ||
      failed(verify(ofResult, ops.weighted.getResult(), /*readsMemory=*/false)))
    return failure();
  // A row of scores stands where its weights will.
  if (k.yielded().size() != 1 ||
      k.elementOf(ops.softmax.getResult()) != computeType(k.elementOf(ops.softmax.getResult())))
    return ops.softmax.emitOpError("shares a kernel that yields several results, or rounds its weights");
  Value yielded = k.yielded().front();
  auto transpose = yielded.getDefiningOp<ds::TransposeOp>();
  made = transpose ? transpose.getInput() : yielded;
  if (made != (ofResult.ops.empty() ? Value(ops.weighted.getResult()) : ofResult.ops.back()->getResult(0)))
    return ops.weighted.emitOpError("shares a kernel that yields something else");
  View stored = k.broadcastView(k.outputBuffer(0), k.sizesOf(yielded), k.sizesOf(yielded));
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

/// All of an operand of a head: in memory, or made in scratch along the axis whose elements are neighbours.
Matrix QuantizedAttention::whole(const Operand &operand, Value scratch, ArrayRef<Value> head) {
  unsigned row = static_cast<unsigned>(head.size()), column = row + 1;
  const View &view = operand.view;
  Value offset = headOffset(view, head), one = k.constant(1), zero = k.constant(0);
  Value rowStride = k.strideOf(view.axes[row]), columnStride = k.strideOf(view.axes[column]);
  if (operand.steps.empty())
    return {view.buffer, offset, rowStride, columnStride};
  bool isTurned = !view.axes[column].stride.isConstant(1) && view.axes[row].stride.isConstant(1);
  SizeVector sizes = k.sizesOf(operand.value);
  const SizeExpr &length = sizes[isTurned ? row : column];
  Value apart = k.index(length);
  k.loop(zero, k.index(sizes[isTurned ? column : row]), one, [&](Value number) {
    Value start = k.add(offset, k.mul(number, isTurned ? columnStride : rowStride));
    emitLine(lineAt(scratch, k.mul(number, apart), length), operand.value, operand.steps, operand.source,
             lineOf(view, isTurned ? row : column, start));
  });
  return isTurned ? Matrix{scratch, zero, one, apart} : Matrix{scratch, zero, apart, one};
}

/// Rows of the queries of a head, whose elements are neighbours where steps need them to be.
Matrix QuantizedAttention::rowsOf(const Operand &operand, Value scratch, ArrayRef<Value> head, Value first,
                                  Value count) {
  unsigned row = static_cast<unsigned>(head.size()), column = row + 1;
  const View &view = operand.view;
  Value one = k.constant(1), zero = k.constant(0), rowStride = k.strideOf(view.axes[row]);
  Value offset = k.add(headOffset(view, head), k.mul(first, rowStride));
  if (!scratch)
    return {view.buffer, offset, rowStride, k.strideOf(view.axes[column])};
  Value depth = k.index(query.back());
  k.loop(zero, count, one, [&](Value number) {
    emitLine(lineAt(scratch, k.mul(number, depth), query.back()), operand.value, operand.steps, operand.source,
             lineOf(view, column, k.add(offset, k.mul(number, rowStride))));
  });
  return {scratch, zero, depth, one};
}

void QuantizedAttention::pack(const MicroKernel &micro, ds::MatmulOp op, const Matrix &matrix, Value panels) {
  Matrix source = matrix;
  if (op.getTranspose()[1])
    std::swap(source.rowStride, source.columnStride);
  int64_t width = ds::scheduleOf(op).getColumns();
  Value depth = k.index(k.sizesOf(op.getLhs()).back()), columns = k.index(k.sizesOf(op.getResult()).back());
  k.loop(k.constant(0), k.ceilDiv(columns, width), k.constant(1), [&](Value number) {
    emitPackPanel(k, micro, source, k.elementOf(op.getRhs()), depth, k.mul(number, k.constant(width)), columns, panels,
                  k.mul(number, panelElements(k, micro, depth, width)), width);
  });
}

/// Rows of the product, as long as whole panels.
void QuantizedAttention::multiply(const MicroKernel &micro, ds::MatmulOp op, const Matrix &rows, Value count,
                                  Value panels, Value products, Value stride) {
  int64_t width = ds::scheduleOf(op).getColumns(), lanes = micro.lanes();
  Value depth = k.index(k.sizesOf(op.getLhs()).back()), columns = k.index(k.sizesOf(op.getResult()).back());
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
    return operand.steps.empty() ? Value() : scratchFor(operand.value, sizes[batch.size()] * sizes.back());
  };
  SizeExpr scores = product(batch) * result[batch.size()] * keyCount;
  k.setFlops(scores * (query.back() + result.back()) * SizeExpr(2) + scores * SizeExpr(5));
  k.setGrid(product(batch), 1);
  Value keyScratch = wholeFor(keys), valueScratch = wholeFor(values);
  keyPanels = panelsFor(*scoring, query.back(), keyCount, keyWidth);
  valuePanels = panelsFor(*weighting, keyCount, result.back(), width);
  if (!queries.steps.empty() || !(scoring->readsStrided() || queries.view.axes.back().stride.isConstant(1)))
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
  k.loop(k.begin, k.end, k.constant(1), [&](Value item) {
    SmallVector<Value> head = k.delinearize(item, batch);
    pack(*scoring, ops.scores, whole(keys, keyScratch, head), keyPanels);
    pack(*weighting, ops.weighted, whole(values, valueScratch, head), valuePanels);
    k.loop(k.constant(0), rowCount, most,
           [&](Value first) { emitRows(head, first, k.minimum(most, k.sub(rowCount, first))); });
  });
}

/// A few rows of a head, from their scores to what is stored.
void QuantizedAttention::emitRows(ArrayRef<Value> head, Value first, Value count) {
  Value one = k.constant(1), zero = k.constant(0);
  multiply(*scoring, ops.scores, rowsOf(queries, queryRows, head, first, count), count, keyPanels, sums, scoreStride);
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
