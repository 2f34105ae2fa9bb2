// Which ops normalize rows: what a product may do to the rows that it reads.
#ifndef DEEPSTRIDE_DIALECTS_DS_NORMS_H
#define DEEPSTRIDE_DIALECTS_DS_NORMS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Whether rows are normalized by the op: each is read as a whole before its first element is written.
inline bool isNorm(mlir::Operation *op) { return llvm::isa_and_present<LayerNormOp, RmsNormOp>(op); }

/// Whether the op reads rows of its first operand, more than once each: its kernel may compute them first.
inline bool readsRows(mlir::Operation *op) { return isNorm(op) || llvm::isa_and_present<SoftmaxOp>(op); }

/// The cast of a norm to bf16 before products that multiply it so; null for other ops.
inline mlir::Operation *roundedNorm(mlir::Operation *op) {
  auto cast = llvm::dyn_cast_if_present<CastOp>(op);
  if (!cast || !llvm::cast<mlir::RankedTensorType>(cast.getResult().getType()).getElementType().isBF16())
    return nullptr;
  mlir::Operation *norm = cast.getInput().getDefiningOp();
  return isNorm(norm) ? norm : nullptr;
}

} // namespace deepstride::ds

#endif
