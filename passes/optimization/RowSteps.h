// What a product's kernel may compute of the rows that it reads: a norm, elementwise ops, codes.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_ROWSTEPS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_ROWSTEPS_H

#include "passes/optimization/Regions.h"

namespace deepstride {

/// What keeps a norm from being computed row by row of the last axis, with a scale and a bias for its elements.
std::optional<llvm::StringRef> normObstacle(mlir::Operation *norm, const SizeAnalysis &analysis);

/// The ops before a product that its kernel can compute row by row, each before what it reads: at most one norm, which
/// reads memory, then ops that take few instructions an element. Something else may read what the last of them gives,
/// the norm, and codes of 8 bits, which the kernel stores then.
llvm::SmallVector<mlir::Operation *> rowSteps(ds::LinearOp product, const SizeAnalysis &analysis);

/// Which of the steps the product's kernel cannot, or should not, compute together with the others, and why.
std::optional<std::pair<mlir::Operation *, llvm::StringRef>> rowStepsObstacle(llvm::ArrayRef<mlir::Operation *> steps,
                                                                              ds::LinearOp product, const OpSet &region,
                                                                              const SizeAnalysis &analysis);

} // namespace deepstride

#endif
