// What is computed of the rows that a product reads, in its kernel: the norm before it, and what they become to be
// multiplied.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_PROLOGUE_H
#define DEEPSTRIDE_CODEGEN_KERNEL_PROLOGUE_H

#include "codegen/kernel/SharedNumbers.h"
#include "codegen/lower/Rows.h"
#include "codegen/tile/Gemm.h"

namespace deepstride {

/// What makes the left operand of a product with packed weights: a norm, elementwise ops behind it or of rows in
/// memory, as those that round to bf16 or make codes with one scale for all rows, or codes with a scale for each row. A
/// block of rows is prepared in scratch before the panels that its thread multiplies it by, so that threads which share
/// a block repeat it.
class Prologue {
public:
  /// Rows of a block: as many as other products walk over between two readings of their panels.
  static constexpr int64_t rowsPerBlock = 128;

  Prologue(KernelBuilder &k, ds::LinearOp product);

  /// Whether there is one. If not, nothing else may be asked.
  explicit operator bool() const { return norm || quantize || !steps.empty(); }

  /// A diagnostic where the kernel cannot compute it.
  llvm::LogicalResult verify();

  /// Makes room for a block of rows.
  void reserve();

  /// Where numbers lie that the steps read. Call it before rows are prepared.
  void readNumbers(const SharedNumbers &places) { numbers = &places; }

  /// Prepares rows [firstRow, firstRow + count), and stores those of the norm, of steps and of what is multiplied that
  /// are the share of `from`, `to` among `parts` where the kernel yields them, too. Yields the block in scratch.
  Matrix emit(mlir::Value firstRow, mlir::Value count, mlir::Value from, mlir::Value to, mlir::Value parts);

  /// The scale of each row of the block, where rows become codes; null elsewhere.
  mlir::Value rowScales() const { return scales; }

private:
  /// Whether rows are something else than the norm's.
  bool isChanged() const { return quantize || !steps.empty(); }
  void emitRow(RowSpace &space, const View &target, mlir::Value from, mlir::Value to);
  void emitSteps(RowSpace &space, const View &target, mlir::Value made, mlir::Value from, mlir::Value to);
  void emitNorm(RowSpace &space, const View &target, mlir::Value from, mlir::Value to);
  /// What the steps read of memory, or of the norm.
  View viewOf(mlir::Value value);
  bool isRows(mlir::Value value) { return k.sizesOf(value) == k.sizesOf(product.getInput()); }

  KernelBuilder &k;
  ds::LinearOp product;
  mlir::Operation *norm = nullptr;
  llvm::SmallVector<mlir::Operation *> steps; // elementwise, in order
  ds::QuantizeRowsOp quantize;
  const SharedNumbers *numbers = nullptr;
  mlir::Value changed;                          // what the last step gives
  llvm::SetVector<mlir::Value> operands;        // of the steps, that none of them gives
  SizeVector shape;                             // all rows, and elements of one
  mlir::Value block, line, changedLine, scales; // scratch; a row before it is changed, and before it becomes codes
};

} // namespace deepstride

#endif
