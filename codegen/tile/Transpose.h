// Squares of elements transposed in registers, rows interleaved there.
#ifndef DEEPSTRIDE_CODEGEN_TILE_TRANSPOSE_H
#define DEEPSTRIDE_CODEGEN_TILE_TRANSPOSE_H

#include "mlir/IR/Builders.h"

namespace deepstride {

/// The columns of a square whose rows are given, as many vectors as each has lanes, a power of two: halves of them are
/// zipped until rows are columns.
llvm::SmallVector<mlir::Value> transposeInRegisters(mlir::OpBuilder &b, mlir::Location loc,
                                                    llvm::SmallVector<mlir::Value> rows);

/// The elements of as many vectors as a power of two, those of one lane side by side: a0 b0 a1 b1 ... of two.
mlir::Value interleaveInRegisters(mlir::OpBuilder &b, mlir::Location loc, llvm::SmallVector<mlir::Value> rows);

} // namespace deepstride

#endif
