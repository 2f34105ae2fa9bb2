// LAMB where ranks have parts of tensors: the trust ratio is of whole ones.
#ifndef DEEPSTRIDE_PASSES_TRAINING_SHAREDTRUST_H
#define DEEPSTRIDE_PASSES_TRAINING_SHAREDTRUST_H

#include "passes/training/Optimizers.h"
#include "passes/training/Units.h"

namespace deepstride {

/// This rank's part of a unit, and what LAMB does to it before the trust ratios.
struct SharedLambStep {
  const Unit *unit;
  mlir::Value parameters; // S elements
  LambStep step;
};

/// The next parameters, for each step. Ranks give each other the norms of blocks, 1/32 of what a parameter has, and
/// each takes the ratios of all tensors of them in the same order, with the bits of one process. Empty where a shape
/// rule has refused. All ranks must come here together: it has a collective, `trust`.
llvm::SmallVector<mlir::Value> applyTrust(DsBuilder &b, const OptimizerSettings &settings,
                                          llvm::ArrayRef<SharedLambStep> steps);

} // namespace deepstride

#endif
