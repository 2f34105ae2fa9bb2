// What ops require of sizes, where they go away: what must be refused must be refused without them, too.
#ifndef DEEPSTRIDE_DIALECTS_DS_REQUIREMENTS_H
#define DEEPSTRIDE_DIALECTS_DS_REQUIREMENTS_H

#include "dialects/ds/Inference.h"
#include "mlir/IR/Builders.h"

namespace deepstride {

/// Whether the op may require something of sizes that only a run can tell. Judged by types and attributes alone, so in
/// doubt it does: for folds, which cannot leave a ds.require.
bool mayRequire(mlir::Operation *op);

/// A ds.require, unless one of those right before it is the same.
void createRequirement(mlir::OpBuilder &builder, const SizeConstraint &constraint);

/// Leaves a ds.require in front of the op, which is about to go, for everything that it requires of sizes and that only
/// a run can tell.
void keepRequirements(mlir::Operation *op, SizeAnalysis &analysis);

/// Erases pure ops of a function that nothing reads any more because others took their place. What they require of
/// sizes stays as ds.require, but for what another op, of their block or around it, requires as well.
llvm::LogicalResult eraseReplacedOps(mlir::Operation *function);

} // namespace deepstride

#endif
