// Training with fp16 and bf16: what reads a parameter reads it rounded; updates go on from what it was before.
#ifndef DEEPSTRIDE_PASSES_TRAINING_ROUNDPARAMETERS_H
#define DEEPSTRIDE_PASSES_TRAINING_ROUNDPARAMETERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace deepstride {

/// Readers of parameters of f32 get what these are in the type, widened again. With `areStored`, the parameters of the
/// entry are states of that type, as packages hold them that keep masters elsewhere; without, they stay f32 and are
/// rounded where they are read. Either way readers get the same bits.
void roundParameters(mlir::func::FuncOp entry, mlir::FloatType type, bool areStored);

} // namespace deepstride

#endif
