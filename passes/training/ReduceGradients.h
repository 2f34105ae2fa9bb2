// The gradients of a micro-batch leave in buckets while others are computed, and become ranks' sums.
#ifndef DEEPSTRIDE_PASSES_TRAINING_REDUCEGRADIENTS_H
#define DEEPSTRIDE_PASSES_TRAINING_REDUCEGRADIENTS_H

#include "passes/training/Signature.h"
#include "passes/training/Update.h"

namespace deepstride {

/// The gradients of a micro-batch, by parameter, and where they go.
struct MicroGradients {
  llvm::ArrayRef<Unit> units;
  llvm::ArrayRef<Parameter> parameters;
  llvm::ArrayRef<mlir::Value> values; // where ranks do not share gradients with what earlier micro-batches have
  mlir::Value isFirst;                // of a step's micro-batches; null: there is one
  mlir::Value isLast;
};

/// Adds up over ranks, where they are complete, gradients in buckets: parts of units, in the order of the way back. The
/// states of gradients become the results.
///
/// Stages 0 and 1 send what the micro-batches of a step have added up, in the last of them; each rank has the sums of
/// everything, or of what it owns, in the places of its own gradients. All messages are under way until the end.
/// Stages 2 and 3 send in each micro-batch, and add up what a rank owns. A unit's gradients stay until those of the
/// next unit are there (section 5.2), since whoever computes them is done with the memory then.
/// Without `overlaps` nothing is computed while a message is under way.
llvm::LogicalResult reduceGradients(DsBuilder &b, Signature &signature, const MicroGradients &gradients,
                                    const SharingSettings &sharing);

} // namespace deepstride

#endif
