// Which reductions are one pass over their input.
#ifndef DEEPSTRIDE_DIALECTS_DS_REDUCTIONS_H
#define DEEPSTRIDE_DIALECTS_DS_REDUCTIONS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Whether a reduction is the norm of a whole tensor in f32, as of a gradient, whose squares are added up in f64.
inline bool isWideNorm(ReduceOp op) {
  auto type = llvm::cast<mlir::RankedTensorType>(op.getType());
  return op.getKind() == ReduceKind::l2 && type.getElementType().isF32() && type.hasStaticShape() &&
         type.getNumElements() == 1;
}

/// Whether two reductions read the same elements once, in one type: a log_sum_exp reads its own twice.
inline bool shareScan(ReduceOp a, ReduceOp b) {
  auto isAlone = [](ReduceOp op) { return op.getKind() == ReduceKind::log_sum_exp || isWideNorm(op); };
  return a.getInput() == b.getInput() && a.getAxes() == b.getAxes() && !isAlone(a) && !isAlone(b);
}

/// Whether one number is left: ops of it may follow in the kernel.
inline bool reducesWhole(ReduceOp op) {
  return static_cast<int64_t>(op.getAxes().size()) ==
         llvm::cast<mlir::RankedTensorType>(op.getInput().getType()).getRank();
}

} // namespace deepstride::ds

#endif
