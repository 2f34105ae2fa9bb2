// What a norm stores of its rows: what it gives, or what elementwise ops behind it make of that, as a residual's sum.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_ROWOUTPUT_H
#define DEEPSTRIDE_CODEGEN_KERNEL_ROWOUTPUT_H

#include "codegen/lower/Rows.h"

namespace deepstride {

class RowOutput {
public:
  /// The result of the kernel's `norm`, whose rows are those of `rows`.
  RowOutput(KernelBuilder &k, RowSpace &rows, mlir::Operation *norm);

  /// Whether ops follow the norm.
  bool isComputed() const { return !ops.empty(); }

  /// A diagnostic where the kernel cannot compute it.
  llvm::LogicalResult verify();

  /// Where rows are stored, and their element.
  const View &view() const { return result; }
  mlir::Type element() { return k.elementOf(stored); }

  /// What the ops read from memory, in the space of the rows.
  llvm::SmallVector<View> views();

  /// What is stored of an element `made` by the norm, and elements of the views, as they are stored.
  mlir::Value apply(mlir::OpBuilder &b, mlir::Value made, mlir::ValueRange elements);

private:
  KernelBuilder &k;
  RowSpace &rows;
  mlir::Operation *norm;
  mlir::Value stored;
  llvm::SmallVector<mlir::Operation *> ops; // in order
  llvm::SetVector<mlir::Value> operands;    // what they read from memory
  View result;
};

} // namespace deepstride

#endif
