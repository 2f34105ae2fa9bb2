// How the tile of a result meets the operands of ops that are applied to it: what fusion allows and code generation
// reads.
#ifndef DEEPSTRIDE_DIALECTS_DS_TILEACCESS_H
#define DEEPSTRIDE_DIALECTS_DS_TILEACCESS_H

#include "dialects/ds/Schedule.h"

namespace deepstride::ds {

/// Of an operand that broadcasts to a result whose first axes are its rows and whose other axes are its columns.
enum class TileAccess {
  whole,   // an element for each of the result's
  scalar,  // one element
  columns, // one for each column: a bias
  rows,    // one for each row: statistics of rows
  lastRows // one for each index of the last axis of the rows: a convolution's filters
};

/// Elements that vectors load and store as they lie in memory. Booleans and narrow formats are only held between ops.
inline bool isTileElement(mlir::Type element) {
  if (element.isF16() || element.isBF16() || element.isF32() || element.isF64())
    return true;
  auto integer = llvm::dyn_cast<mlir::IntegerType>(element);
  return integer && integer.getWidth() >= 8 && integer.getWidth() <= 64;
}

/// Whether an op of a tile may read the operand: as vectors, or, a single boolean, for all elements at once.
inline bool isTileOperand(mlir::Type element, llvm::ArrayRef<SizeExpr> sizes) {
  bool isOne = llvm::all_of(sizes, [](const SizeExpr &size) { return size.isConstant(1); });
  return isTileElement(element) || (isOne && element.isInteger(1));
}

/// Whether products have one input and panels of one layout, so that a kernel can compute the same area of both before
/// ops combine them: the halves of a gate.
inline bool arePair(LinearOp a, LinearOp b) {
  auto typeOf = [](mlir::Value value) {
    return value ? llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType() : mlir::Type();
  };
  return a.getInput() == b.getInput() && a.getPanel() && a.getPanel() == b.getPanel() &&
         a.getColumns() == b.getColumns() && a.getInterleave() == b.getInterleave() && a.getGroup() == b.getGroup() &&
         scheduleOf(a) == scheduleOf(b) && a.getWide() == b.getWide() &&
         typeOf(a.getWeight()) == typeOf(b.getWeight()) && typeOf(a.getResult()) == typeOf(b.getResult()) &&
         typeOf(a.getScales()) == typeOf(b.getScales()) && typeOf(a.getZeroPoints()) == typeOf(b.getZeroPoints());
}

/// Whether a kernel that yields these values computes both products of the rows that it has, each with panels of its
/// own and a result of its own in memory: projections whose weights are stored in other ways.
inline bool areBeside(LinearOp a, LinearOp b, mlir::ValueRange yielded) {
  return a != b && a.getInput() == b.getInput() && a.getPanel() && b.getPanel() &&
         llvm::is_contained(yielded, a.getResult()) && llvm::is_contained(yielded, b.getResult());
}

/// None where an operand of sizes `own` is read in another way, or may be at run time.
inline std::optional<TileAccess> tileAccess(llvm::ArrayRef<SizeExpr> own, llvm::ArrayRef<SizeExpr> result,
                                            int64_t rowAxes) {
  if (own == result)
    return TileAccess::whole;
  if (own.size() > result.size())
    return std::nullopt;
  size_t rank = result.size(), missing = rank - own.size();
  auto isOne = [&](size_t axis) { return axis < missing || own[axis - missing].isConstant(1); };
  auto isWhole = [&](size_t axis) { return axis >= missing && own[axis - missing] == result[axis]; };
  auto all = [&](auto holds, size_t from, size_t to) {
    bool does = true;
    for (size_t axis = from; axis < to; ++axis)
      does = does && holds(axis);
    return does;
  };
  auto rows = static_cast<size_t>(rowAxes);
  if (all(isOne, 0, rank))
    return TileAccess::scalar;
  if (all(isOne, 0, rows) && all(isWhole, rows, rank))
    return TileAccess::columns;
  if (!all(isOne, rows, rank) || rows == 0)
    return std::nullopt;
  if (all(isWhole, 0, rows))
    return TileAccess::rows;
  return all(isOne, 0, rows - 1) && isWhole(rows - 1) ? std::optional(TileAccess::lastRows) : std::nullopt;
}

} // namespace deepstride::ds

#endif
