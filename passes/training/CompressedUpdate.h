// The second regime of optimizers whose messages are of 1 bit: two entries beside `update`, for the steps in which
// second averages stay as they are and momentum is what ranks exchange.
#ifndef DEEPSTRIDE_PASSES_TRAINING_COMPRESSEDUPDATE_H
#define DEEPSTRIDE_PASSES_TRAINING_COMPRESSEDUPDATE_H

#include "passes/training/Update.h"

namespace deepstride {

/// The spaces that momentum travels in, each with a scale of its own; one for all tensors of a type (1-bit LAMB), or,
/// of each unit, one for every large tensor and one for all small ones (1-bit Adam).
llvm::SmallVector<Unit> findMessages(mlir::func::FuncOp model, const SizeAnalysis &analysis,
                                     const OptimizerSettings &optimizer);

/// Appends to the module, for the parameters of `model` whose facts `analysis` knows:
/// - `local_norm`: loss_scale, ranks and gradients to grad_norm, the root of the mean over ranks of the squared norm of
///   `ranks` times this rank's gradients, which is what one rank would have without the others; and to finite, as
///   `update` has it.
/// - `update_compressed`, of a step for which that was finite: grad_norm, loss_scale, ranks, learning_rate, momentum
/// and
///   states to the next states. Momentum moves by this rank's gradients, becomes the mean over ranks, in 1 bit, and
///   moves the parameters. Where a second average is 0, there was no gradient in all of the warm-up: 1 bit cannot say
///   0, so momentum is made 0 there before and after.
/// Layers and running statistics are as in `update`. Gradients stay this rank's own.
llvm::LogicalResult buildCompressedUpdate(mlir::func::FuncOp model, const SizeAnalysis &analysis,
                                          const UpdateSettings &settings, const MicroStates &micro);

} // namespace deepstride

#endif
