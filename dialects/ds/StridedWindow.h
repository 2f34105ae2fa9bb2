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

/// What reshapes show: the value whose elements these are, in the same order.
mlir::Value throughReshapes(mlir::Value value);

/// What the window op shows of a window, which its operand is; `sizes` are those of its result, `starts` those of a
/// slice. None where a reshape joins axes between which elements are left out, so that no strides reach them.
std::optional<StridedWindow> windowThrough(mlir::Operation *op, const StridedWindow &window,
                                           llvm::ArrayRef<SizeExpr> sizes, llvm::ArrayRef<SizeExpr> starts);

/// The same elements, in the same order, along other axes, which hold as many; none where no strides reach them.
std::optional<StridedWindow> reshapedWindow(const StridedWindow &window, llvm::ArrayRef<SizeExpr> sizes);

/// The box of what an insertion changes that becomes its update; `into`: sizes of what is changed.
StridedWindow insertedBox(llvm::ArrayRef<SizeExpr> into, llvm::ArrayRef<SizeExpr> update,
                          llvm::ArrayRef<SizeExpr> starts);

/// Rows that hold neighbouring elements: element (row, column) is `offset + row * stride + column`.
struct RowWindow {
  SizeExpr offset, stride;

  /// Of a window whose first axes are the rows; none where rows do not lie at equal distances, or a row is in parts.
  static std::optional<RowWindow> of(const StridedWindow &window, size_t rowAxes);
};

/// What a kernel or a fused region computes and the insertion stores, seen through reshapes: the result of an
/// elementwise op or of an anchor. Null where the op is no insertion, or inserts what is in memory.
mlir::Value insertedResult(mlir::Operation *op);

} // namespace deepstride::ds

#endif
