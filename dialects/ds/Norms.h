// Which ops normalize, round or quantize rows: what a product may do to the rows that it reads.
#ifndef DEEPSTRIDE_DIALECTS_DS_NORMS_H
#define DEEPSTRIDE_DIALECTS_DS_NORMS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Whether rows are normalized by the op: each is read as a whole before its first element is written.
inline bool isNorm(mlir::Operation *op) { return llvm::isa_and_present<LayerNormOp, RmsNormOp>(op); }

/// Whether the op reads rows of its first operand, more than once each: its kernel may compute them first.
inline bool readsRows(mlir::Operation *op) { return isNorm(op) || llvm::isa_and_present<SoftmaxOp>(op); }

/// The norm whose rows a cast rounds before products that multiply them so: to bf16 or f16, or back from f16 to the f32
/// that they are multiplied as. Null for other ops.
inline mlir::Operation *roundedNorm(mlir::Operation *op) {
  auto elementOf = [](mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType();
  };
  auto cast = llvm::dyn_cast_if_present<CastOp>(op);
  if (cast && elementOf(cast.getResult()).isF32() && elementOf(cast.getInput()).isF16())
    cast = cast.getInput().getDefiningOp<CastOp>();
  if (!cast || !(elementOf(cast.getResult()).isBF16() || elementOf(cast.getResult()).isF16()))
    return nullptr;
  mlir::Operation *norm = cast.getInput().getDefiningOp();
  return isNorm(norm) ? norm : nullptr;
}

/// Whether the op may change rows in the kernel of the product that reads them.
inline bool preparesRows(mlir::Operation *op) {
  return isNorm(op) || roundedNorm(op) || llvm::isa_and_present<QuantizeRowsOp>(op);
}

/// What prepares the rows that a product reads, the last op first: they are normalized, and then rounded or quantized.
/// Empty where nothing does.
inline llvm::SmallVector<mlir::Operation *, 4> rowSteps(LinearOp product) {
  llvm::SmallVector<mlir::Operation *, 4> steps;
  mlir::Operation *op = product.getInput().getDefiningOp();
  if (auto quantize = llvm::dyn_cast_if_present<QuantizeRowsOp>(op)) {
    steps.push_back(op);
    op = quantize.getInput().getDefiningOp();
    op = isNorm(op) ? op : nullptr;
  }
  for (; roundedNorm(op); op = op->getOperand(0).getDefiningOp())
    steps.push_back(op);
  if (isNorm(op))
    steps.push_back(op);
  return steps;
}

} // namespace deepstride::ds

#endif
