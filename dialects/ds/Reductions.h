// Which reductions are one pass over their input, and which are computed beside something else: of the rows that a
// kernel makes, or before its product.
#ifndef DEEPSTRIDE_DIALECTS_DS_REDUCTIONS_H
#define DEEPSTRIDE_DIALECTS_DS_REDUCTIONS_H

#include "dialects/ds/Norms.h"

namespace deepstride::ds {

/// Whether a reduction is the norm of a whole tensor in f32, as of a gradient, whose squares are added up in f64.
inline bool isWideNorm(ReduceOp op) {
  auto type = llvm::cast<mlir::RankedTensorType>(op.getType());
  return op.getKind() == ReduceKind::l2 && type.getElementType().isF32() && type.hasStaticShape() &&
         type.getNumElements() == 1;
}

/// Whether two reductions read the same elements once, in one type: a log_sum_exp reads its own twice.
inline bool shareScan(ReduceOp a, ReduceOp b) {
  auto isAlone = [](ReduceOp op) { return op.getKind() == ReduceKind::log_sum_exp || isWideNorm(op); };
  return a.getInput() == b.getInput() && a.getAxes() == b.getAxes() && !isAlone(a) && !isAlone(b);
}

/// Whether one number is left: ops of it may follow in the kernel.
inline bool reducesWhole(ReduceOp op) {
  return static_cast<int64_t>(op.getAxes().size()) ==
         llvm::cast<mlir::RankedTensorType>(op.getInput().getType()).getRank();
}

inline bool takesExtreme(ReduceOp op) { return op.getKind() == ReduceKind::max || op.getKind() == ReduceKind::min; }

/// Whether two reductions take extremes of two results of one kernel, as the greatest of the greatest numbers of rows
/// and the least of the least: one kernel takes them one after the other.
inline bool shareKernel(ReduceOp a, ReduceOp b) {
  mlir::Operation *from = a.getInput().getDefiningOp();
  return reducesWhole(a) && reducesWhole(b) && takesExtreme(a) && takesExtreme(b) &&
         llvm::isa_and_present<FusedOp>(from) && from == b.getInput().getDefiningOp() &&
         a.getInput().getType() == b.getInput().getType() && a.getType() == b.getType();
}

/// Whether the greatest or least number of each row is taken, of what the op's kernel may make.
inline bool isRowExtreme(mlir::Operation *op) {
  auto reduce = llvm::dyn_cast_or_null<ReduceOp>(op);
  if (!reduce || reduce.getKeepDims() || !takesExtreme(reduce))
    return false;
  auto type = llvm::cast<mlir::RankedTensorType>(reduce.getInput().getType());
  return type.getElementType().isF32() && reduce.getAxes() == llvm::ArrayRef<int64_t>(type.getRank() - 1);
}

/// What the op of a region or a kernel takes the extremes of, as another op there makes it: the parts of a product's
/// rows are shown by a reshape. Null where it takes none, or what it reads is in memory.
inline mlir::Value extremesOf(mlir::Operation *op) {
  if (!isRowExtreme(op))
    return {};
  mlir::Value made = op->getOperand(0);
  auto isInside = [&] { return made.getDefiningOp() && made.getDefiningOp()->getBlock() == op->getBlock(); };
  if (auto parts = made.getDefiningOp<ReshapeOp>(); parts && isInside())
    made = parts.getInput();
  return isInside() ? made : mlir::Value();
}

/// Whether the kernel of `rows`, which reads rows, may have the op behind it: extremes of what it gives, or elementwise
/// ops that are applied to that.
inline bool followsRows(mlir::Operation *op, mlir::Operation *rows) {
  return extremesOf(op) || (isNorm(rows) && llvm::isa<PerElement>(op));
}

/// Whether the op of a region or a kernel shows a product's rows in parts, of which others take the extremes.
inline bool showsParts(mlir::Operation *op) {
  return llvm::isa<ReshapeOp>(op) && !op->use_empty() && llvm::all_of(op->getUsers(), [&](mlir::Operation *user) {
           return user->getBlock() == op->getBlock() && extremesOf(user);
         });
}

/// Whether the op of a product's region or kernel gives a number that is computed once, before all rows: of the
/// extremes of whole tensors, which are in memory or what the norm before the product gives, and of other numbers,
/// constants or in memory.
inline bool givesSharedNumber(mlir::Operation *op) {
  auto isNumber = [](mlir::Value value) {
    auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
    return type.hasStaticShape() && type.getNumElements() == 1;
  };
  llvm::SmallVector<mlir::Operation *> work = {op};
  llvm::SmallPtrSet<mlir::Operation *, 16> seen = {op};
  bool reduces = false;
  while (!work.empty()) {
    mlir::Operation *each = work.pop_back_val();
    auto isMade = [&](mlir::Value value) {
      return value.getDefiningOp() && value.getDefiningOp()->getBlock() == op->getBlock();
    };
    if (auto reduce = llvm::dyn_cast<ReduceOp>(each)) {
      if (!reducesWhole(reduce) || !takesExtreme(reduce) ||
          (isMade(reduce.getInput()) && !isNorm(reduce.getInput().getDefiningOp())))
        return false;
      reduces = true;
      continue;
    }
    if (!llvm::isa<PerElement>(each) || llvm::isa<ConstantOp>(each) || !isNumber(each->getResult(0)))
      return false;
    for (mlir::Value operand : each->getOperands()) {
      if (!isNumber(operand))
        return false;
      mlir::Operation *from = operand.getDefiningOp();
      if (isMade(operand) && !llvm::isa<ConstantOp>(from) && seen.insert(from).second)
        work.push_back(from);
    }
  }
  return reduces;
}

} // namespace deepstride::ds

#endif
