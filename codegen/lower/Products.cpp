// Kernels of ds.linear and ds.matmul. f32 goes through the micro-kernel over column panels, which are packed when the
// package is written (weights) or into scratch (states, activations); other types, and the reference, are plain loops.
// Threads split columns and batches, never the inner dimension.
#include "codegen/lower/KernelBuilder.h"
#include "codegen/lower/MicroKernel.h"

using namespace mlir;

namespace deepstride {

/// Rows of the left operand that are walked under one sweep over the panels: with K of a few thousand, both they and a
/// panel stay in a 1 MiB level-2 cache.
static constexpr int64_t rowsPerSweep = 128;

static SizeExpr panelCount(const SizeExpr &columns, int64_t panel) { return SizeExpr::ceilDiv(columns, panel); }

static Value ceilDiv(KernelBuilder &k, Value value, int64_t divisor) {
  return arith::DivUIOp::create(k.b, k.loc, k.add(value, k.constant(divisor - 1)), k.constant(divisor));
}

LogicalResult lowerLinear(KernelBuilder &k, ds::LinearOp op) {
  Type element = k.elementOf(op.getInput());
  SizeVector shape = k.sizesOf(op.getInput()), weightShape = k.sizesOf(op.getWeight());
  SizeExpr rowsSize = product(ArrayRef(shape).drop_back()), depthSize = shape.back();
  SizeExpr columnsSize = op.getColumns()      ? SizeExpr(*op.getColumns())
                         : op.getTransposed() ? weightShape.front()
                                              : weightShape.back();
  Value rows = k.index(rowsSize), depth = k.index(depthSize), columns = k.index(columnsSize);
  Value input = k.bufferOf(op.getInput()), weight = k.bufferOf(op.getWeight()), output = k.outputBuffer(0);
  Value bias = op.getBias() ? k.bufferOf(op.getBias()) : Value();
  k.setFlops(rowsSize * depthSize * columnsSize * SizeExpr(2));
  Value one = k.constant(1);

  bool isTransposed = op.getTransposed();
  Matrix whole{weight, k.constant(0), isTransposed ? one : columns, isTransposed ? depth : one};
  bool usesPanels = element.isF32() && k.target.lanes > 1;
  if (op.getPanel() && !usesPanels)
    return op.emitOpError("packed weights need f32 and vectors");

  if (!usesPanels) {
    k.setGrid(rowsSize, 1);
    k.loop(k.begin, k.end, one, [&](Value row) {
      k.loop(k.constant(0), columns, one, [&](Value column) {
        Value cell = k.cell(computeType(element));
        Value start = bias ? k.load(bias, column, element) : scalarConstant(k.b, k.loc, element, 0.0);
        memref::StoreOp::create(k.b, k.loc, start, cell);
        k.loop(k.constant(0), depth, one, [&](Value step) {
          Value x = k.load(input, k.add(k.mul(row, depth), step), element);
          Value at = k.add(k.mul(step, whole.rowStride), k.mul(column, whole.columnStride));
          Value product = emitBinary(k.b, k.loc, ds::BinaryKind::mul, x, k.load(weight, at, element), element, element);
          Value sum = memref::LoadOp::create(k.b, k.loc, cell);
          memref::StoreOp::create(k.b, k.loc,
                                  emitBinary(k.b, k.loc, ds::BinaryKind::add, sum, product, element, element), cell);
        });
        k.store(memref::LoadOp::create(k.b, k.loc, cell), output, k.add(k.mul(row, columns), column), element);
      });
    });
    return success();
  }

  int64_t panel = op.getPanel() ? *op.getPanel() : k.target.panel, lanes = k.target.lanes, vectors = panel / lanes;
  k.setGrid(panelCount(columnsSize, panel), 1);
  auto multiply = [&](const Matrix &lhs, Value firstRow, Value count, Value number, Value packed, Value offset) {
    Value first = k.mul(number, k.constant(panel));
    emitPanelProduct(k, lhs, count, depth, packed, offset, vectors, k.target.rowBlock,
                     [&](Value row, int64_t v, Value value) {
                       Value column = k.add(first, k.constant(v * lanes));
                       Value remaining = k.sub(columns, column);
                       if (bias)
                         value = arith::AddFOp::create(k.b, k.loc, value, emitRowLoad(k, bias, column, remaining));
                       Value position = k.add(k.mul(k.add(firstRow, row), columns), column);
                       emitRowStore(k, value, output, position, remaining);
                     });
  };
  if (!op.getPanel()) { // packed by the thread that multiplies, one panel for all rows
    Value packed = k.scratchOf(k.b.getF32Type(), depthSize * SizeExpr(panel)), zero = k.constant(0);
    k.loop(k.begin, k.end, one, [&](Value number) {
      emitPackPanel(k, whole, depth, k.mul(number, k.constant(panel)), columns, packed, zero, panel);
      multiply(Matrix{input, zero, depth, one}, zero, rows, number, packed, zero);
    });
    return success();
  }
  k.loop(k.constant(0), rows, k.constant(rowsPerSweep), [&](Value sweep) {
    Value sweepRows = k.minimum(k.constant(rowsPerSweep), k.sub(rows, sweep));
    Matrix lhs{input, k.mul(sweep, depth), depth, one};
    k.loop(k.begin, k.end, one, [&](Value number) {
      multiply(lhs, sweep, sweepRows, number, weight, k.mul(k.mul(number, depth), k.constant(panel)));
    });
  });
  return success();
}

LogicalResult lowerMatmul(KernelBuilder &k, ds::MatmulOp op) {
  Type element = k.elementOf(op.getLhs());
  SizeVector left = k.sizesOf(op.getLhs()), right = k.sizesOf(op.getRhs()), shape = k.sizesOf(op.getResult());
  SizeVector batch(shape.begin(), shape.end() - 2);
  SizeExpr rowsSize = shape[shape.size() - 2], columnsSize = shape.back();
  bool transposeLeft = op.getTranspose()[0], transposeRight = op.getTranspose()[1];
  SizeExpr depthSize = transposeLeft ? left[left.size() - 2] : left.back();
  Value rows = k.index(rowsSize), columns = k.index(columnsSize), depth = k.index(depthSize);
  Value one = k.constant(1), zero = k.constant(0), output = k.outputBuffer(0);

  // Batch axes broadcast; the strides of the whole matrices enter as the innermost batch stride.
  auto batchView = [&](Value value, ArrayRef<SizeExpr> own) {
    View view = k.broadcastView(k.bufferOf(value), own.drop_back(2), batch);
    SizeExpr matrix = own[own.size() - 1] * own[own.size() - 2];
    for (Axis &axis : view.axes)
      axis.stride = axis.stride * matrix;
    return view;
  };
  View leftView = batchView(op.getLhs(), left), rightView = batchView(op.getRhs(), right);
  SmallVector<unsigned> batchAxes;
  for (unsigned axis = 0; axis < batch.size(); ++axis)
    batchAxes.push_back(axis);
  auto matrixOf = [&](const View &view, ArrayRef<Value> at, bool transposed, ArrayRef<SizeExpr> own) {
    Value stride = k.index(own.back());
    return Matrix{view.buffer, k.offsetAt(view, batchAxes, at), transposed ? one : stride, transposed ? stride : one};
  };
  k.setFlops(product(shape) * depthSize * SizeExpr(2));

  if (!element.isF32() || k.target.lanes <= 1) {
    k.setGrid(product(batch) * rowsSize, 1);
    k.loop(k.begin, k.end, one, [&](Value item) {
      Value row = arith::RemUIOp::create(k.b, k.loc, item, rows);
      SmallVector<Value> at = k.delinearize(arith::DivUIOp::create(k.b, k.loc, item, rows), batch);
      Matrix a = matrixOf(leftView, at, transposeLeft, left), c = matrixOf(rightView, at, transposeRight, right);
      k.loop(zero, columns, one, [&](Value column) {
        Value cell = k.cell(computeType(element));
        memref::StoreOp::create(k.b, k.loc, scalarConstant(k.b, k.loc, element, 0.0), cell);
        k.loop(zero, depth, one, [&](Value step) {
          Value x =
              k.load(a.buffer, k.add(a.offset, k.add(k.mul(row, a.rowStride), k.mul(step, a.columnStride))), element);
          Value y = k.load(c.buffer, k.add(c.offset, k.add(k.mul(step, c.rowStride), k.mul(column, c.columnStride))),
                           element);
          Value product = emitBinary(k.b, k.loc, ds::BinaryKind::mul, x, y, element, element);
          Value sum = memref::LoadOp::create(k.b, k.loc, cell);
          memref::StoreOp::create(k.b, k.loc,
                                  emitBinary(k.b, k.loc, ds::BinaryKind::add, sum, product, element, element), cell);
        });
        k.store(memref::LoadOp::create(k.b, k.loc, cell), output, k.add(k.mul(item, columns), column), element);
      });
    });
    return success();
  }

  int64_t panel = k.target.panel, lanes = k.target.lanes;
  k.setGrid(product(batch) * panelCount(columnsSize, panel), 1);
  Value packed = k.scratchOf(k.b.getF32Type(), depthSize * SizeExpr(panel));
  Value panels = ceilDiv(k, columns, panel);
  k.loop(k.begin, k.end, one, [&](Value item) {
    Value number = arith::RemUIOp::create(k.b, k.loc, item, panels);
    Value matrix = arith::DivUIOp::create(k.b, k.loc, item, panels);
    SmallVector<Value> at = k.delinearize(matrix, batch);
    Matrix a = matrixOf(leftView, at, transposeLeft, left), c = matrixOf(rightView, at, transposeRight, right);
    Value first = k.mul(number, k.constant(panel));
    emitPackPanel(k, c, depth, first, columns, packed, zero, panel);
    Value base = k.mul(matrix, k.mul(rows, columns));
    emitPanelProduct(k, a, rows, depth, packed, zero, panel / lanes, k.target.rowBlock,
                     [&](Value row, int64_t v, Value value) {
                       Value column = k.add(first, k.constant(v * lanes));
                       Value position = k.add(base, k.add(k.mul(row, columns), column));
                       emitRowStore(k, value, output, position, k.sub(columns, column));
                     });
  });
  return success();
}

} // namespace deepstride
