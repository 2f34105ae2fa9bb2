// Squares of elements transposed in registers.
#ifndef DEEPSTRIDE_CODEGEN_TILE_TRANSPOSE_H
#define DEEPSTRIDE_CODEGEN_TILE_TRANSPOSE_H

#include "mlir/IR/Builders.h"

namespace deepstride {

/// The columns of a square whose rows are given, as many vectors as each has lanes, a power of two: halves of them are
/// zipped until rows are columns.
llvm::SmallVector<mlir::Value> transposeInRegisters(mlir::OpBuilder &b, mlir::Location loc,
                                                    llvm::SmallVector<mlir::Value> rows);

} // namespace deepstride

#endif
