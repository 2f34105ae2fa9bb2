// What becomes of ds.dropout, and of the dropout of attentions, in the entries of training.
#ifndef DEEPSTRIDE_PASSES_TRAINING_DROPOUT_H
#define DEEPSTRIDE_PASSES_TRAINING_DROPOUT_H

#include "dialects/ds/DsBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace deepstride {

bool hasDropout(mlir::func::FuncOp function);

/// For evaluation: every ds.dropout becomes its operand, and attentions keep all of their weights.
void removeDropouts(mlir::func::FuncOp function);

/// Numbers without axes, in i64, that a micro-batch is given.
struct RandomState {
  mlir::Value seed, step, micro;
};

/// The first word of Philox4x32-10 for each element of `sizes`, as expandDropouts says, in ui64.
mlir::Value randomWords(DsBuilder &b, const SizeVector &sizes, const RandomState &state, int64_t stream);

/// Every ds.dropout becomes ops. The places that are 0 are those of element i for which the first word of
/// Philox4x32-10, on the key `seed` and the counter (i mod 2^32, micro + 2^24 * (i / 2^32), step, stream), each of 32
/// bits, is below ratio * 2^32. No two dropouts share ops, so that what a gradient needs is computed, not kept.
/// Attentions draw in their kernels, and are given the state and their stream.
llvm::LogicalResult expandDropouts(mlir::func::FuncOp function, SizeAnalysis &analysis, const RandomState &state);

} // namespace deepstride

#endif
