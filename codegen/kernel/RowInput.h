// Where a norm or a softmax reads its rows: in memory, through windows of a buffer, or computed element by element.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_ROWINPUT_H
#define DEEPSTRIDE_CODEGEN_KERNEL_ROWINPUT_H

#include "codegen/lower/Rows.h"

namespace deepstride {

class RowInput {
public:
  /// The operand `value` of the kernel's anchor, whose rows make up `rows`; `output` is where the anchor's result goes.
  RowInput(KernelBuilder &k, RowSpace &rows, mlir::Value value, const View &output);

  /// Whether the rows are computed in this kernel.
  bool isComputed() const { return !ops.empty(); }

  /// A diagnostic where the kernel cannot read or compute it.
  llvm::LogicalResult verify();

  /// Computes a row, if rows are computed. A row that the kernel yields, too, is stored as its result; else it stands
  /// in the anchor's own result, which the anchor then writes over: no scratch is needed, however long rows are.
  void emit(llvm::ArrayRef<mlir::Value> row);

  /// Where the anchor reads elements, after `emit`.
  const View &view() const { return source; }

private:
  KernelBuilder &k;
  RowSpace &rows;
  mlir::Value value;
  llvm::SmallVector<mlir::Operation *> ops; // in order
  llvm::SetVector<mlir::Value> operands;    // what they read from memory
  View source;
  bool isInMemory = false;
};

} // namespace deepstride

#endif
