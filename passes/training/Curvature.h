// The entry that multiplies the Hessian of the loss by a vector, for power iteration.
#ifndef DEEPSTRIDE_PASSES_TRAINING_CURVATURE_H
#define DEEPSTRIDE_PASSES_TRAINING_CURVATURE_H

#include "passes/training/Blocks.h"

namespace deepstride {

inline constexpr llvm::StringLiteral directionSuffix = "direction";

/// Makes of `model`, which yields the loss first, one step of power iteration. It is given `curvature_block`, i64, and
/// `loss_weight`, f64, that multiplies the loss. With v what NAME/direction of the block's parameters hold, zeros for
/// all others, u = v / (|v| + stability) and H the Hessian of the loss: yields `eigenvalue`, u H u in f64, and makes H
/// u the direction of the block's parameters. What is no finite number is 0 in v and in H u. No layer's parameter has
/// no direction. Nothing is dropped out, and norms are those of the batch.
llvm::LogicalResult buildCurvature(mlir::func::FuncOp model, const Blocks &blocks, double stability);

} // namespace deepstride

#endif
