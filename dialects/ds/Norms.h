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

/// Whether a use of the op's result in its block satisfies `ends`, or a use of what ops that satisfy `passes` make of
/// it. Each op is looked at once, however many paths lead to it.
template <typename Passes, typename Ends> bool flowsInto(mlir::Operation *op, Passes passes, Ends ends) {
  llvm::SmallVector<mlir::Operation *> work = {op};
  llvm::SmallPtrSet<mlir::Operation *, 8> seen = {op};
  while (!work.empty()) {
    for (mlir::OpOperand &use : work.pop_back_val()->getUses()) {
      mlir::Operation *user = use.getOwner();
      if (user->getBlock() != op->getBlock())
        continue;
      if (ends(use))
        return true;
      if (passes(user) && seen.insert(user).second)
        work.push_back(user);
    }
  }
  return false;
}

/// Whether the op of a region or a kernel changes rows before a product there reads them: a norm, elementwise ops, and
/// what makes codes of rows. Of norms and `ds.quantize_rows` it does not ask what reads them.
inline bool preparesRows(mlir::Operation *op) {
  auto makesRows = [](mlir::Operation *each) { return isNorm(each) || llvm::isa<QuantizeRowsOp>(each); };
  if (!op || makesRows(op))
    return op;
  return llvm::isa<PerElement>(op) && flowsInto(op, llvm::IsaPred<PerElement>, [&](mlir::OpOperand &use) {
           auto product = llvm::dyn_cast<LinearOp>(use.getOwner());
           return makesRows(use.getOwner()) || (product && use.get() == product.getInput());
         });
}

/// Whether the op of a region or a kernel computes the filters of a convolution there: elementwise ops, and a reshape.
inline bool preparesFilters(mlir::Operation *op) {
  auto passes = [](mlir::Operation *each) {
    return llvm::isa<PerElement, ReshapeOp>(each) && !llvm::isa<ConstantOp>(each);
  };
  return op && passes(op) && flowsInto(op, passes, [](mlir::OpOperand &use) {
           auto convolution = llvm::dyn_cast<ConvOp>(use.getOwner());
           return convolution && use.get() == convolution.getWeight();
         });
}

} // namespace deepstride::ds

#endif
