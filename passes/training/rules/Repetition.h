// What may be there once more on the way back, since it computes nothing: all else that a rule reads of a body is kept.
#ifndef DEEPSTRIDE_PASSES_TRAINING_RULES_REPETITION_H
#define DEEPSTRIDE_PASSES_TRAINING_RULES_REPETITION_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

/// Whether an op only moves elements.
inline bool isMovement(mlir::Operation *op) {
  return mlir::isa<ds::SliceOp, ds::ReshapeOp, ds::TransposeOp, ds::BroadcastOp>(op);
}

/// Whether an op reads nothing: a constant, a weight, a size.
inline bool isLeaf(mlir::Operation *op) {
  return op->getNumOperands() == 0 && op->getNumRegions() == 0 && !mlir::isa<ds::DefineOp>(op);
}

/// Whether an op gives the entry itself a number to steer by: the condition of a branch.
inline bool isScalar(mlir::Operation *op) {
  return op->getNumResults() == 1 && !mlir::isa<mlir::RankedTensorType>(op->getResult(0).getType());
}

} // namespace deepstride

#endif
