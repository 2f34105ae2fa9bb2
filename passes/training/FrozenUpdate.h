// What 1-bit optimizers do to one parameter once its second average stays as it is (1-bit Adam, Tang et al.
// 2102.02888; 1-bit LAMB, Li et al. 2104.06069).
#ifndef DEEPSTRIDE_PASSES_TRAINING_FROZENUPDATE_H
#define DEEPSTRIDE_PASSES_TRAINING_FROZENUPDATE_H

#include "passes/training/Optimizers.h"

namespace deepstride {

struct FrozenParameter {
  mlir::Value value, momentum, square; // states
  mlir::Value local, common;           // momentum of this rank, and the mean of all ranks', times `scale`
  bool decays = true;
  // Of 1-bit LAMB: states, and the number that momentum is multiplied by for its way, so that all parameters have one
  // size there. The factor multiplies the averaged trust ratio.
  mlir::Value fresh, scale, factor, trustAverage;
};

/// What the first step after the warm-up sets, of all parameters of 1-bit LAMB: fresh squares are the frozen ones,
/// factors 1, and each scale the mean size of all momenta over the parameter's own, 1 where that is 0. Later steps
/// leave states as they are.
void beginFrozen(DsBuilder &b, llvm::MutableArrayRef<FrozenParameter> parameters);

/// The momentum that this rank's gradient makes, times the scale. Null where a shape rule has refused.
mlir::Value localMomentum(DsBuilder &b, const StepNumbers &numbers, const FrozenParameter &parameter,
                          mlir::Value gradient);

/// The next value and momentum, and of 1-bit LAMB the next of OptimizerSettings::frozenStates. Null where a shape rule
/// has refused.
llvm::SmallVector<mlir::Value> updateFrozen(DsBuilder &b, const OptimizerSettings &settings, const StepNumbers &numbers,
                                            const FrozenParameter &parameter);

} // namespace deepstride

#endif
