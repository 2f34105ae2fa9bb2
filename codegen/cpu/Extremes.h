// The greatest and the least of floats without the cost of exactness: as the standard has them, a NaN wins and -0 is
// less than +0, which takes five instructions a step. Comparisons alone take one, and are as good unless a NaN was seen
// or the result is 0; whoever uses them must look for both, and then combine again.
#ifndef DEEPSTRIDE_CODEGEN_CPU_EXTREMES_H
#define DEEPSTRIDE_CODEGEN_CPU_EXTREMES_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deepstride {

/// Whether the op combines floats to their greatest or least.
bool isExtreme(mlir::Operation *combine);

/// What `combine` makes of vectors without NaN, up to the sign of 0: where `x` is NaN, it is left out.
mlir::Value compareExtreme(mlir::OpBuilder &b, mlir::Operation *combine, mlir::Value extreme, mlir::Value x);

/// `flags` with a NaN in the lanes where x or y have one; for `flags` that begin as 0.
mlir::Value flagNaN(mlir::OpBuilder &b, mlir::Location loc, mlir::Value flags, mlir::Value x, mlir::Value y);

/// Whether any lane is NaN.
mlir::Value anyNaN(mlir::OpBuilder &b, mlir::Location loc, mlir::Value vector);

/// Whether what `combine` makes of the lanes is 0.
mlir::Value isZeroExtreme(mlir::OpBuilder &b, mlir::Operation *combine, mlir::Value lanes);

} // namespace deepstride

#endif
