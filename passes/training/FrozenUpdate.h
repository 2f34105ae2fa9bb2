// What 1-bit optimizers do to one parameter once its second average stays as it is (facts: 1-bit Adam).
#ifndef DEEPSTRIDE_PASSES_TRAINING_FROZENUPDATE_H
#define DEEPSTRIDE_PASSES_TRAINING_FROZENUPDATE_H

#include "passes/training/Optimizers.h"

namespace deepstride {

struct FrozenParameter {
  mlir::Value value, momentum, square; // states
  mlir::Value local, common;           // momentum of this rank, and the mean of all ranks'
  bool decays = true;
};

/// The momentum that this rank's gradient makes. Null where a shape rule has refused.
mlir::Value localMomentum(DsBuilder &b, const StepNumbers &numbers, const FrozenParameter &parameter,
                          mlir::Value gradient);

/// The next value and momentum. Null where a shape rule has refused.
std::pair<mlir::Value, mlir::Value> updateFrozen(DsBuilder &b, const OptimizerSettings &settings,
                                                 const StepNumbers &numbers, const FrozenParameter &parameter);

} // namespace deepstride

#endif
