// A softmax between two products that one kernel computes: attention whose scores and weights are quantized on the way.
#ifndef DEEPSTRIDE_DIALECTS_DS_SOFTMAXPRODUCTS_H
#define DEEPSTRIDE_DIALECTS_DS_SOFTMAXPRODUCTS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Elementwise ops may stand between all of them.
struct SoftmaxProducts {
  MatmulOp scores;
  SoftmaxOp softmax;
  MatmulOp weighted;

  /// Those of a region or a kernel; none where it has other ones or another number of them.
  static std::optional<SoftmaxProducts> of(llvm::ArrayRef<mlir::Operation *> ops) {
    llvm::SmallVector<mlir::Operation *, 3> found;
    for (mlir::Operation *op : ops)
      if (llvm::isa<MatmulOp, SoftmaxOp>(op))
        found.push_back(op);
    if (found.size() != 3 || !llvm::isa<SoftmaxOp>(found[1]))
      return std::nullopt;
    auto scores = llvm::dyn_cast<MatmulOp>(found[0]), weighted = llvm::dyn_cast<MatmulOp>(found[2]);
    if (!scores || !weighted)
      return std::nullopt;
    return SoftmaxProducts{scores, llvm::cast<SoftmaxOp>(found[1]), weighted};
  }
};

} // namespace deepstride::ds

#endif
