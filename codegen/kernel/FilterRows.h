// The filters of a convolution that its kernel makes floats of, as those that a package holds in 8 bits.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_FILTERROWS_H
#define DEEPSTRIDE_CODEGEN_KERNEL_FILTERROWS_H

#include "codegen/tile/Gemm.h"

namespace deepstride {

/// Elementwise ops between what is in memory and the filters of a convolution. Filters that a panel of pixels meets are
/// computed in scratch before they do: an element costs a few instructions, and is multiplied once for each pixel.
class FilterRows {
public:
  FilterRows(KernelBuilder &k, ds::ConvOp op);

  /// Whether there are any. If not, nothing else may be asked.
  explicit operator bool() const { return !steps.empty(); }

  /// A diagnostic where the kernel cannot compute them.
  llvm::LogicalResult verify();

  /// Makes room for so many filters.
  void reserve(int64_t filters);

  /// Computes filters [first, first + count), which are rows of the matrix in scratch.
  Matrix emit(mlir::Value first, mlir::Value count);

private:
  KernelBuilder &k;
  ds::ConvOp op;
  llvm::SmallVector<mlir::Operation *> steps; // in order
  llvm::SetVector<mlir::Value> operands;      // of the steps, in memory
  mlir::Value numbers;                        // what the last step gives
  SizeVector shape;                           // of it: filters, and elements of one
  mlir::Value block;                          // scratch
};

} // namespace deepstride

#endif
