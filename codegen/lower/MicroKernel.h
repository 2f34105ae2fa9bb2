// The f32 GEMM micro-kernel: a tile of rows times a panel of columns, accumulated in registers over all of K.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_MICROKERNEL_H
#define DEEPSTRIDE_CODEGEN_LOWER_MICROKERNEL_H

#include "codegen/lower/KernelBuilder.h"

namespace deepstride {

/// One operand of a tile: element (i, j) lies at offset + i * rowStride + j * columnStride of a flat buffer.
struct Matrix {
  mlir::Value buffer, offset, rowStride, columnStride;
};

/// Emits loops over rows [0, rows) in tiles of `rowBlock`, then 4, 2 and 1 rows, and inside a k loop with
/// rows x vectors accumulators. `panel` is one packed panel: K rows of vectors * lanes floats. Every row is the same
/// chain of fused multiply-adds in every tile, so its bits do not depend on how many rows there are.
/// `consume(row, vector, value)` gets each finished vector.
using TileConsumer = llvm::function_ref<void(mlir::Value row, int64_t vector, mlir::Value value)>;
void emitPanelProduct(KernelBuilder &k, const Matrix &lhs, mlir::Value rows, mlir::Value depth, mlir::Value panel,
                      mlir::Value panelOffset, int64_t vectors, int64_t rowBlock, TileConsumer consume);

/// Copies a K x columns block into a panel of `width` floats per row, zero beyond `columns`.
void emitPackPanel(KernelBuilder &k, const Matrix &source, mlir::Value depth, mlir::Value firstColumn,
                   mlir::Value columns, mlir::Value panel, mlir::Value panelOffset, int64_t width);

/// Stores one vector of a row at `position`, as far as the row has `remaining` columns.
void emitRowStore(KernelBuilder &k, mlir::Value vector, mlir::Value buffer, mlir::Value position,
                  mlir::Value remaining);
/// Loads one vector, zero beyond `remaining` elements.
mlir::Value emitRowLoad(KernelBuilder &k, mlir::Value buffer, mlir::Value position, mlir::Value remaining);

} // namespace deepstride

#endif
