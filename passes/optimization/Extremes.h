// The least and greatest number of a whole tensor, as DynamicQuantizeLinear takes them: first those of each row, where
// a kernel makes it, then those of what is left.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_EXTREMES_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_EXTREMES_H

#include "passes/optimization/Regions.h"

namespace deepstride {

/// What takes an extreme of all of the value, in its block: of the value, or of what reshapes show of it.
llvm::SmallVector<ds::ReduceOp> wholeExtremes(mlir::Value value);

/// Has them read the extremes of the rows of `rows`, whose elements are those that they read, and adds what takes those
/// to the region. Exact: extremes do not depend on the order in which they are taken. Gives the last op that it created
/// for the region, and adds to `partial` what reads the extremes now.
mlir::Operation *takeRowExtremes(llvm::ArrayRef<ds::ReduceOp> extremes, mlir::Value rows, OpSet &region,
                                 SizeAnalysis &analysis, llvm::SmallPtrSetImpl<mlir::Operation *> &partial);

/// The ops that make the numbers which the product's region reads, of what `partial` reduces and of other numbers: its
/// kernel can compute them. None where something else reads one of them, too, which `stays` is told.
OpSet sharedNumbers(ds::LinearOp product, const OpSet &region, const llvm::SmallPtrSetImpl<mlir::Operation *> &partial,
                    llvm::function_ref<void(mlir::Operation *, llvm::StringRef)> stays);

} // namespace deepstride

#endif
