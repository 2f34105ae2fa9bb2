// Emits native-width vector code directly: accumulators are loop-carried values, so nothing can keep them in memory
// (upstream's path on memrefs reaches a third of the peak because of possible aliasing).
#include "codegen/lower/MicroKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

static VectorType vectorType(KernelBuilder &k) { return VectorType::get({k.target.lanes}, k.b.getF32Type()); }

static void emitTile(KernelBuilder &k, const Matrix &lhs, Value firstRow, int64_t rowCount, Value depth, Value panel,
                     Value panelOffset, int64_t vectors, TileConsumer consume) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  VectorType type = vectorType(k);
  Value zero = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, 0.0f));
  SmallVector<Value> initial(rowCount * vectors, zero), rowOffsets;
  for (int64_t row = 0; row < rowCount; ++row)
    rowOffsets.push_back(k.add(lhs.offset, k.mul(k.add(firstRow, k.constant(row)), lhs.rowStride)));
  Value width = k.constant(vectors * k.target.lanes);
  auto loop = scf::ForOp::create(
      b, loc, k.constant(0), depth, k.constant(1), initial,
      [&](OpBuilder &, Location, Value step, ValueRange accumulators) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(step.getParentBlock());
        Value base = k.add(panelOffset, k.mul(step, width));
        SmallVector<Value> columns, next;
        for (int64_t v = 0; v < vectors; ++v)
          columns.push_back(vector::LoadOp::create(b, loc, type, panel, k.add(base, k.constant(v * k.target.lanes))));
        for (int64_t row = 0; row < rowCount; ++row) {
          Value position = k.add(rowOffsets[row], k.mul(step, lhs.columnStride));
          Value scalar = memref::LoadOp::create(b, loc, lhs.buffer, position);
          Value wide = vector::BroadcastOp::create(b, loc, type, scalar);
          for (int64_t v = 0; v < vectors; ++v)
            next.push_back(vector::FMAOp::create(b, loc, wide, columns[v], accumulators[row * vectors + v]));
        }
        scf::YieldOp::create(b, loc, next);
      });
  for (int64_t row = 0; row < rowCount; ++row)
    for (int64_t v = 0; v < vectors; ++v)
      consume(k.add(firstRow, k.constant(row)), v, loop.getResult(row * vectors + v));
}

void emitPanelProduct(KernelBuilder &k, const Matrix &lhs, Value rows, Value depth, Value panel, Value panelOffset,
                      int64_t vectors, int64_t rowBlock, TileConsumer consume) {
  SmallVector<int64_t> blocks = {rowBlock};
  for (int64_t block : {4, 2, 1})
    if (block < rowBlock)
      blocks.push_back(block);
  Value from = k.constant(0);
  for (int64_t block : blocks) {
    Value size = k.constant(block);
    Value count = arith::DivUIOp::create(k.b, k.loc, k.sub(rows, from), size);
    Value to = k.add(from, k.mul(count, size));
    k.loop(from, to, size,
           [&](Value row) { emitTile(k, lhs, row, block, depth, panel, panelOffset, vectors, consume); });
    from = to;
  }
}

void emitPackPanel(KernelBuilder &k, const Matrix &source, Value depth, Value firstColumn, Value columns, Value panel,
                   Value panelOffset, int64_t width) {
  Value zero = scalarConstant(k.b, k.loc, k.b.getF32Type(), 0.0);
  Value remaining = k.minimum(k.sub(columns, firstColumn), k.constant(width));
  bool contiguousColumns = getConstantIntValue(source.columnStride) == 1;
  auto from = [&](Value row, Value column) {
    return k.add(source.offset,
                 k.add(k.mul(row, source.rowStride), k.mul(k.add(firstColumn, column), source.columnStride)));
  };
  auto to = [&](Value row, Value column) { return k.add(panelOffset, k.add(k.mul(row, k.constant(width)), column)); };
  Value one = k.constant(1), none = k.constant(0);
  if (contiguousColumns) {
    k.loop(none, depth, one, [&](Value row) {
      for (int64_t column = 0; column < width; column += k.target.lanes) {
        Value at = k.constant(column);
        Value vector = emitRowLoad(k, source.buffer, from(row, at), k.sub(remaining, at));
        vector::StoreOp::create(k.b, k.loc, vector, panel, to(row, at));
      }
    });
    return;
  }
  // In blocks of rows whose lines of the panel stay in the level-1 cache while column after column is read.
  constexpr int64_t rowsPerBlock = 64;
  k.loop(none, depth, k.constant(rowsPerBlock), [&](Value block) {
    Value end = k.minimum(k.add(block, k.constant(rowsPerBlock)), depth);
    k.loop(none, remaining, one, [&](Value column) {
      k.loop(block, end, one, [&](Value row) {
        Value value = memref::LoadOp::create(k.b, k.loc, source.buffer, from(row, column));
        memref::StoreOp::create(k.b, k.loc, value, panel, to(row, column));
      });
    });
    k.loop(remaining, k.constant(width), one, [&](Value column) {
      k.loop(block, end, one, [&](Value row) { memref::StoreOp::create(k.b, k.loc, zero, panel, to(row, column)); });
    });
  });
}

static Value maskFor(KernelBuilder &k, Value remaining) {
  auto type = VectorType::get({k.target.lanes}, k.b.getI1Type());
  return vector::CreateMaskOp::create(k.b, k.loc, type, remaining);
}

void emitRowStore(KernelBuilder &k, Value vector, Value buffer, Value position, Value remaining) {
  vector::MaskedStoreOp::create(k.b, k.loc, buffer, position, maskFor(k, remaining), vector);
}

Value emitRowLoad(KernelBuilder &k, Value buffer, Value position, Value remaining) {
  VectorType type = vectorType(k);
  Value zero = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(type, 0.0f));
  return vector::MaskedLoadOp::create(k.b, k.loc, type, buffer, position, maskFor(k, remaining), zero);
}

} // namespace deepstride
