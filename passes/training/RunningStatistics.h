// What becomes of ds.running_statistic in the entries of training.
#ifndef DEEPSTRIDE_PASSES_TRAINING_RUNNINGSTATISTICS_H
#define DEEPSTRIDE_PASSES_TRAINING_RUNNINGSTATISTICS_H

#include "passes/training/Parameters.h"
#include "passes/training/Signature.h"

namespace deepstride {

/// Fails after an error where a branch or a loop holds an op whose running statistic is a state: how often such an op
/// runs, and so what it moves the state to, only a run tells.
llvm::LogicalResult checkRunningStatistics(mlir::func::FuncOp model);

/// For evaluation: both results become the running statistic.
void useRunningStatistics(mlir::func::FuncOp eval);
/// For derivatives of second order: the batch's, and nothing moves.
void useBatchStatistics(mlir::func::FuncOp function);

/// What a micro-batch moves a running statistic to.
struct MovedStatistic {
  Parameter statistic;
  mlir::Value value;
};

/// For a micro-batch: what is used becomes the batch's statistic. Each op moves its running statistic, in the order of
/// the ops where several move one: the first one from the running statistic, or from what micro-batches before this one
/// have moved it to, a state NAME/moved that is added to the signature, unless `isFirst` holds or is null. A statistic
/// that is no state stays, and is not among the results. Fails where a shape rule has refused.
llvm::FailureOr<llvm::SmallVector<MovedStatistic>>
moveRunningStatistics(mlir::func::FuncOp micro, SizeAnalysis &analysis, Signature &signature, mlir::Value isFirst);

} // namespace deepstride

#endif
