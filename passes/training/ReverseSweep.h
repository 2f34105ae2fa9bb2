// Reverse mode over one block: what depends on given values, and the rules of the ops on the way, last ones first.
#ifndef DEEPSTRIDE_PASSES_TRAINING_REVERSESWEEP_H
#define DEEPSTRIDE_PASSES_TRAINING_REVERSESWEEP_H

#include "passes/training/Derivative.h"
#include "llvm/ADT/SetVector.h"

namespace deepstride {

/// Operands of an op and what its regions use from above.
llvm::SetVector<mlir::Value> valuesUsedBy(mlir::Operation *op);

class ReverseSweep {
public:
  /// Finds the values of the block that depend on the sources continuously: integers and bools have no derivative, or
  /// that of a step. The sources may lie outside.
  ReverseSweep(mlir::Block &block, mlir::ValueRange sources);

  /// Computes, where the builder stands, the derivatives of sum(seed * result) over all results whose seed is not null.
  /// Fails after an error for each kind of op between sources and results that has no rule, or where a rule refuses.
  llvm::LogicalResult run(mlir::ValueRange results, mlir::ValueRange seeds, DsBuilder &b);
  /// The derivative with respect to a source or a value of the block; null where no result depends on it.
  mlir::Value gradient(mlir::Value value) const { return gradients.lookup(value); }

  bool depends(mlir::Value value) const { return varied.contains(value); }
  int64_t opCount() const { return count; }

private:
  llvm::SmallVector<mlir::Operation *> findPath(mlir::ValueRange results) const;

  mlir::Block &block;
  llvm::DenseSet<mlir::Value> varied;
  Derivative::Gradients gradients;
  int64_t count = 0;
};

} // namespace deepstride

#endif
