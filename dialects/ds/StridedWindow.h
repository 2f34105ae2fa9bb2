// Windows of a buffer that transposes, slices and reshapes make: what fusion lets a kernel read in place, and the
// strides by which code generation reads it.
#ifndef DEEPSTRIDE_DIALECTS_DS_STRIDEDWINDOW_H
#define DEEPSTRIDE_DIALECTS_DS_STRIDEDWINDOW_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Elements of a buffer: along axis i there are `sizes[i]`, `strides[i]` elements apart, from `offset` on.
struct StridedWindow {
  SizeExpr offset;
  SizeVector sizes, strides;

  /// A whole buffer, row by row.
  static StridedWindow whole(llvm::ArrayRef<SizeExpr> sizes);
};

/// Whether the op only chooses which elements of its operand are read, and in which order.
inline bool isWindowOp(mlir::Operation *op) { return llvm::isa_and_present<TransposeOp, SliceOp, ReshapeOp>(op); }

/// What the window op shows of a window, which its operand is; `sizes` are those of its result, `starts` those of a
/// slice. None where a reshape joins axes between which elements are left out, so that no strides reach them.
std::optional<StridedWindow> windowThrough(mlir::Operation *op, const StridedWindow &window,
                                           llvm::ArrayRef<SizeExpr> sizes, llvm::ArrayRef<SizeExpr> starts);

} // namespace deepstride::ds

#endif
