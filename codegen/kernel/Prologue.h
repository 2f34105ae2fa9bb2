// What is computed of the rows that a product reads, in its kernel: the norm before it, and what they become to be
// multiplied.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_PROLOGUE_H
#define DEEPSTRIDE_CODEGEN_KERNEL_PROLOGUE_H

#include "codegen/lower/Rows.h"
#include "codegen/tile/Gemm.h"

namespace deepstride {

/// What makes the left operand of a product with packed weights: a norm, a rounding to bf16 or f16 behind it, or codes
/// of its rows or of rows in memory. A block of rows is prepared in scratch before the panels that its thread
/// multiplies it by, so that threads which share a block repeat it.
class Prologue {
public:
  /// Rows of a block: as many as other products walk over between two readings of their panels.
  static constexpr int64_t rowsPerBlock = 128;

  Prologue(KernelBuilder &k, ds::LinearOp product);

  /// Whether there is one. If not, nothing else may be asked.
  explicit operator bool() const { return first; }

  /// A diagnostic where the kernel cannot compute it.
  llvm::LogicalResult verify();

  /// What has to be in memory before the kernel runs.
  mlir::Value input() const { return first->getOperand(0); }

  /// Makes room for a block of rows.
  void reserve();

  /// Prepares rows [firstRow, firstRow + count), and stores those of the norm's that are the share of `from`, `to`
  /// among `parts` where the kernel yields the norm, too. Yields the block in scratch.
  Matrix emit(mlir::Value firstRow, mlir::Value count, mlir::Value from, mlir::Value to, mlir::Value parts);

  /// The scale of each row of the block, where rows become codes; null elsewhere.
  mlir::Value rowScales() const { return scales; }

private:
  /// Whether rows are something else than the norm's.
  bool isChanged() const { return quantize || !roundings.empty(); }
  void emitRow(RowSpace &space, const View &source, const View &target, mlir::Value from, mlir::Value to);

  KernelBuilder &k;
  ds::LinearOp product;
  mlir::Operation *first = nullptr, *norm = nullptr; // what reads memory
  llvm::SmallVector<mlir::Operation *, 2> roundings; // casts behind the norm, in order
  ds::QuantizeRowsOp quantize;
  SizeExpr rows, depth;
  mlir::Value block, line, scales; // scratch; a row before it is rounded or becomes codes
};

} // namespace deepstride

#endif
