// Which ops normalize, change or quantize rows: what a product may do to the rows that it reads.
#ifndef DEEPSTRIDE_DIALECTS_DS_NORMS_H
#define DEEPSTRIDE_DIALECTS_DS_NORMS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Whether rows are normalized by the op: each is read as a whole before its first element is written.
inline bool isNorm(mlir::Operation *op) { return llvm::isa_and_present<LayerNormOp, RmsNormOp>(op); }

/// Whether the op reads rows of its first operand, more than once each: its kernel may compute them first.
inline bool readsRows(mlir::Operation *op) { return isNorm(op) || llvm::isa_and_present<SoftmaxOp>(op); }

/// Elementwise functions of a few instructions, which every thread may compute of the rows that it multiplies.
inline bool isCheapForRows(mlir::Operation *op) {
  if (auto binary = llvm::dyn_cast<BinaryOp>(op)) {
    bool isFloat = llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(binary.getLhs().getType()));
    return llvm::is_contained({BinaryKind::add, BinaryKind::sub, BinaryKind::mul, BinaryKind::min, BinaryKind::max},
                              binary.getKind()) ||
           (isFloat && binary.getKind() == BinaryKind::div);
  }
  if (auto unary = llvm::dyn_cast<UnaryOp>(op))
    return llvm::is_contained(
        {UnaryKind::abs, UnaryKind::neg, UnaryKind::relu, UnaryKind::round, UnaryKind::floor, UnaryKind::ceil},
        unary.getKind());
  return llvm::isa<CastOp>(op);
}

/// Whether the op of a region or a kernel changes rows before a product there reads them: a norm, elementwise ops, and
/// what makes codes of rows. Of norms and `ds.quantize_rows` it does not ask what reads them.
inline bool preparesRows(mlir::Operation *op) {
  if (!op || isNorm(op) || llvm::isa<QuantizeRowsOp>(op))
    return op;
  return llvm::isa<PerElement>(op) && llvm::any_of(op->getUsers(), [&](mlir::Operation *user) {
           auto product = llvm::dyn_cast<LinearOp>(user);
           return user->getBlock() == op->getBlock() &&
                  (product ? product.getInput() == op->getResult(0) : preparesRows(user));
         });
}

/// Whether the op of a region or a kernel computes the filters of a convolution there: elementwise ops, and a reshape.
inline bool preparesFilters(mlir::Operation *op) {
  return llvm::isa_and_present<PerElement, ReshapeOp>(op) && llvm::any_of(op->getUsers(), [&](mlir::Operation *user) {
           auto convolution = llvm::dyn_cast<ConvOp>(user);
           return user->getBlock() == op->getBlock() && !llvm::isa<ConstantOp>(op) &&
                  (convolution ? convolution.getWeight() == op->getResult(0) : preparesFilters(user));
         });
}

} // namespace deepstride::ds

#endif
