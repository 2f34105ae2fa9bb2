// Follows windows and row ops back to a buffer. Row ops keep sizes, so that the strides of what they read are those of
// what they yield; the windows behind them apply to their tables, too.
#include "dialects/ds/HeadRows.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

bool ds::holdsRows(Type element) { return element.isF16() || element.isBF16() || element.isF32() || element.isF64(); }

bool ds::isRowOp(Operation *op) {
  if (!op || op->getNumResults() != 1)
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !holdsRows(type.getElementType()))
    return false;
  auto isLine = [](Value value) { return !value || cast<RankedTensorType>(value.getType()).getRank() == 1; };
  auto isLast = [&](uint64_t axis) { return static_cast<int64_t>(axis) + 1 == type.getRank(); };
  if (auto layer = dyn_cast<LayerNormOp>(op))
    return isLast(layer.getAxis()) && isLine(layer.getScale()) && isLine(layer.getBias());
  if (auto rms = dyn_cast<RmsNormOp>(op))
    return isLast(rms.getAxis()) && isLine(rms.getScale());
  return isa<RotaryOp>(op);
}

/// A table that broadcasts to `sizes` along all axes but the last.
static std::optional<StridedWindow> tableOver(ArrayRef<SizeExpr> own, ArrayRef<SizeExpr> sizes) {
  StridedWindow lines = StridedWindow::whole(own);
  StridedWindow window{0, SizeVector(sizes.begin(), sizes.end()), SizeVector(sizes.size(), SizeExpr(0))};
  size_t missing = sizes.size() - own.size();
  for (size_t axis = 0; axis + 1 < own.size(); ++axis) {
    if (own[axis].isConstant(1))
      continue;
    if (own[axis] != sizes[axis + missing])
      return std::nullopt;
    window.strides[axis + missing] = lines.strides[axis];
  }
  window.strides.back() = 1;
  return window;
}

/// Whether rows are shown whole and in their order.
static bool keepsRows(Operation *op, const SizeExpr &before, const SizeExpr &after, ArrayRef<SizeExpr> starts) {
  if (before != after)
    return false;
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    auto permutation = transpose.getPermutation();
    return !permutation.empty() && permutation.back() == static_cast<int64_t>(permutation.size()) - 1;
  }
  auto slice = dyn_cast<SliceOp>(op);
  return !slice || (slice.getSteps().back() == 1 && starts.back().isConstant(0));
}

std::optional<HeadRows> ds::headRows(Value value, llvm::function_ref<bool(Value)> isSource,
                                     llvm::function_ref<SizeVector(Value)> sizesOf,
                                     llvm::function_ref<SizeVector(ArrayAttr)> startsOf) {
  SmallVector<Operation *> ops;
  for (; !isSource(value); value = ops.back()->getOperand(0)) {
    Operation *op = value.getDefiningOp();
    if (!isWindowOp(op) && !isRowOp(op))
      return std::nullopt;
    ops.push_back(op);
  }
  HeadRows rows{value, StridedWindow::whole(sizesOf(value)), {}};
  for (Operation *op : llvm::reverse(ops)) {
    SizeVector before = sizesOf(op->getOperand(0)), after = sizesOf(op->getResult(0));
    if (isRowOp(op)) {
      RowStep step{op, {}};
      if (!rows.window.strides.back().isConstant(1))
        return std::nullopt;
      if (auto rotary = dyn_cast<RotaryOp>(op))
        for (Value table : {rotary.getCosines(), rotary.getSines()}) {
          auto window = tableOver(sizesOf(table), after);
          if (!window)
            return std::nullopt;
          step.tables.push_back(*window);
        }
      rows.steps.push_back(step);
      continue;
    }
    auto slice = dyn_cast<SliceOp>(op);
    SizeVector starts = slice ? startsOf(slice.getStarts()) : SizeVector();
    if (!rows.steps.empty() && (before.empty() || after.empty() || !keepsRows(op, before.back(), after.back(), starts)))
      return std::nullopt;
    auto show = [&](StridedWindow &window) {
      auto shown = windowThrough(op, window, after, starts);
      if (shown)
        window = *shown;
      return shown.has_value();
    };
    bool isReached = show(rows.window);
    for (RowStep &step : rows.steps)
      for (StridedWindow &table : step.tables)
        isReached = isReached && show(table);
    if (!isReached)
      return std::nullopt;
  }
  return rows;
}
