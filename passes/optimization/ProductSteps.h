// What is behind a product of integers: the elementwise ops that make numbers of its sums, as zero points, scales and a
// bias do, from what its columns or all elements share.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_PRODUCTSTEPS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_PRODUCTSTEPS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

/// The ops, in order, each the only reader of what is before it; none behind floats, which scales and biases that are
/// operands of the product have made.
llvm::SmallVector<mlir::Operation *> stepsOf(ds::LinearOp product);

/// What the steps make, or the product where there are none.
mlir::Value steppedResult(ds::LinearOp product);

/// The product of integers whose steps made the value; null where something else did.
ds::LinearOp productBehind(mlir::Value value);

/// Whether the products, beside each other, could be followed by one row of steps.
bool haveLikeSteps(ds::LinearOp a, ds::LinearOp b);

/// Follows `whole`, which has the columns of `products` side by side, by their steps, which are alike. `join` puts
/// constants of one axis side by side. Created before the steps that are the first to be done; null where `join` fails.
mlir::Value joinSteps(llvm::ArrayRef<ds::LinearOp> products, mlir::Value whole,
                      llvm::function_ref<mlir::Value(mlir::OpBuilder &, llvm::ArrayRef<mlir::Value>)> join);

} // namespace deepstride

#endif
