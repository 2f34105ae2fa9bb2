// Which reductions are one pass over their input.
#ifndef DEEPSTRIDE_DIALECTS_DS_REDUCTIONS_H
#define DEEPSTRIDE_DIALECTS_DS_REDUCTIONS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Whether two reductions read the same elements once: a log_sum_exp reads its own twice.
inline bool shareScan(ReduceOp a, ReduceOp b) {
  return a.getInput() == b.getInput() && a.getAxes() == b.getAxes() && a.getKind() != ReduceKind::log_sum_exp &&
         b.getKind() != ReduceKind::log_sum_exp;
}

/// Whether one number is left: ops of it may follow in the kernel.
inline bool reducesWhole(ReduceOp op) {
  return static_cast<int64_t>(op.getAxes().size()) ==
         llvm::cast<mlir::RankedTensorType>(op.getInput().getType()).getRank();
}

} // namespace deepstride::ds

#endif
