// Products by micro-kernels whose registers hold squares of 16 by 16 sums: two rows of squares by a panel, in blocks of
// K for which the rows and the panel stay in the level-1 cache. A row's sums are those of the same squares along K in
// the same order, whatever rows are beside it.
#ifndef DEEPSTRIDE_CODEGEN_TILE_SQUARES_H
#define DEEPSTRIDE_CODEGEN_TILE_SQUARES_H

#include "codegen/tile/Gemm.h"

namespace deepstride {

/// Scratch for as many rows of a left operand as one sweep takes, `rows` at the most.
mlir::Value reserveSquares(KernelBuilder &k, const SquareKernel &micro, const SizeExpr &depth, const SizeExpr &rows);

/// Packs rows of `element` whose elements along K are contiguous into that scratch, as emitPanelProduct reads them: for
/// every 16 rows, square by square along K, lines of 64 bytes. K is filled with 0 to whole squares.
Matrix emitPackSquares(KernelBuilder &k, const SquareKernel &micro, const Matrix &lhs, mlir::Type element,
                       mlir::Value rows, mlir::Value depth, mlir::Value scratch);

/// What emitPanelProduct does, with packed rows.
void emitSquareProduct(KernelBuilder &k, const SquareKernel &micro, const Matrix &lhs, mlir::Value rows,
                       mlir::Value depth, const Panel &panel, mlir::Value columns, TileSink sink);

} // namespace deepstride

#endif
