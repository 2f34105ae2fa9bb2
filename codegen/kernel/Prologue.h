// What is computed of the rows that a product reads, in its kernel: the norm before it.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_PROLOGUE_H
#define DEEPSTRIDE_CODEGEN_KERNEL_PROLOGUE_H

#include "codegen/tile/Gemm.h"

namespace deepstride {

/// The norm that makes the left operand of a product with packed weights, rounded to bf16 or not. A block of rows is
/// normalized to scratch before the panels that its thread multiplies it by, so that threads which share a block repeat
/// it.
class Prologue {
public:
  /// Rows of a block: as many as other products walk over between two readings of their panels.
  static constexpr int64_t rowsPerBlock = 128;

  Prologue(KernelBuilder &k, ds::LinearOp product);

  /// Whether there is one. If not, nothing else may be asked.
  explicit operator bool() const { return norm; }

  /// A diagnostic where the kernel cannot compute it.
  llvm::LogicalResult verify();

  /// What has to be in memory before the kernel runs.
  mlir::Value input() const { return norm->getOperand(0); }

  /// Makes room for a block of rows.
  void reserve();

  /// Normalizes rows [first, first + count), and stores those of them that are the share of `from`, `to` among `parts`
  /// where the kernel yields the norm, too. Yields the block in scratch.
  Matrix emit(mlir::Value first, mlir::Value count, mlir::Value from, mlir::Value to, mlir::Value parts);

private:
  KernelBuilder &k;
  ds::LinearOp product;
  mlir::Operation *norm;
  llvm::SmallVector<mlir::Operation *, 2> roundings; // casts behind the norm, in order
  SizeExpr rows, depth;
  mlir::Value block, line; // scratch; a row before it is rounded
};

} // namespace deepstride

#endif
