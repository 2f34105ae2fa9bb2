// Strides of what transposes, slices and reshapes show of a buffer. Sizes are compared as they are written: what is
// equal only for some values of symbols is not taken for equal.
#include "dialects/ds/StridedWindow.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

StridedWindow StridedWindow::whole(ArrayRef<SizeExpr> sizes) {
  StridedWindow window{0, SizeVector(sizes.begin(), sizes.end()), SizeVector(sizes.size())};
  SizeExpr stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0; stride = stride * sizes[axis])
    window.strides[axis] = stride;
  return window;
}

/// How many of the first axes hold `count` elements, from axis `first` on, which follow `before` elements.
static std::optional<size_t> endOfGroup(ArrayRef<SizeExpr> sizes, size_t first, const SizeExpr &before,
                                        const SizeExpr &count) {
  SizeExpr elements = before;
  for (size_t end = first + 1; end <= sizes.size(); ++end) {
    elements = elements * sizes[end - 1];
    if (elements == count)
      return end;
  }
  return std::nullopt;
}

/// Axes [from, end) of the window as one: the distance of neighbours, where that is the same everywhere.
static std::optional<SizeExpr> joined(const StridedWindow &window, size_t from, size_t end) {
  std::optional<SizeExpr> stride, next; // of the innermost axis; of what lies around those seen so far
  for (size_t axis = end; axis-- > from;) {
    if (window.sizes[axis].isConstant(1))
      continue;
    if (next && window.strides[axis] != *next)
      return std::nullopt;
    if (!stride)
      stride = window.strides[axis];
    next = window.strides[axis] * window.sizes[axis];
  }
  return stride.value_or(SizeExpr(1));
}

// Axes of both shapes fall into groups of equal counts; a group keeps its elements.
std::optional<StridedWindow> ds::reshapedWindow(const StridedWindow &window, ArrayRef<SizeExpr> sizes) {
  auto isEmpty = [](const SizeExpr &size) { return size.isConstant(0); }; // their products say nothing
  if (llvm::any_of(sizes, isEmpty) || llvm::any_of(window.sizes, isEmpty))
    return std::nullopt;
  StridedWindow result{window.offset, SizeVector(sizes.begin(), sizes.end()), SizeVector(sizes.size(), SizeExpr(1))};
  SizeExpr count = 1; // elements of the groups so far
  size_t from = 0, to = 0;
  while (to < sizes.size()) {
    // The shortest group on the side of the result that ends where one of the window's does.
    SizeExpr here = count;
    size_t toEnd = to;
    std::optional<size_t> fromEnd;
    while (!fromEnd && toEnd < sizes.size()) {
      here = here * sizes[toEnd++];
      fromEnd = here == count ? from : endOfGroup(window.sizes, from, count, here);
    }
    auto stride = fromEnd ? joined(window, from, *fromEnd) : std::nullopt;
    if (!stride)
      return std::nullopt;
    for (size_t axis = toEnd; axis-- > to; *stride = *stride * sizes[axis])
      result.strides[axis] = *stride;
    count = here;
    from = *fromEnd;
    to = toEnd;
  }
  bool isWhole =
      llvm::all_of(ArrayRef(window.sizes).drop_front(from), [](const SizeExpr &s) { return s.isConstant(1); });
  return isWhole ? std::optional(result) : std::nullopt;
}

Value ds::throughReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getInput();
  return value;
}

std::optional<StridedWindow> ds::windowThrough(Operation *op, const StridedWindow &window, ArrayRef<SizeExpr> sizes,
                                               ArrayRef<SizeExpr> starts) {
  if (isa<ReshapeOp>(op))
    return reshapedWindow(window, sizes);
  StridedWindow result{window.offset, SizeVector(sizes.begin(), sizes.end()), window.strides};
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      result.strides[to] = window.strides[from];
    return result;
  }
  auto slice = cast<SliceOp>(op);
  for (auto [axis, start] : llvm::enumerate(starts)) {
    result.offset = result.offset + start * window.strides[axis];
    result.strides[axis] = window.strides[axis] * SizeExpr(slice.getSteps()[axis]);
  }
  return result;
}

StridedWindow ds::insertedBox(ArrayRef<SizeExpr> into, ArrayRef<SizeExpr> update, ArrayRef<SizeExpr> starts) {
  StridedWindow box = StridedWindow::whole(into);
  for (auto [start, stride] : llvm::zip_equal(starts, box.strides))
    box.offset = box.offset + start * stride;
  box.sizes.assign(update.begin(), update.end());
  return box;
}

std::optional<RowWindow> RowWindow::of(const StridedWindow &window, size_t rowAxes) {
  ArrayRef<SizeExpr> sizes(window.sizes);
  auto matrix = reshapedWindow(window, {product(sizes.take_front(rowAxes)), product(sizes.drop_front(rowAxes))});
  if (!matrix || !(matrix->strides[1].isConstant(1) || matrix->sizes[1].isConstant(1)))
    return std::nullopt;
  return RowWindow{matrix->offset, matrix->strides[0]};
}

Value ds::insertedResult(Operation *op) {
  auto insert = dyn_cast_or_null<InsertOp>(op);
  if (!insert || !isa<FusedOp, KernelOp>(op->getParentOp()))
    return {};
  for (Operation &other : *op->getBlock()) // its rows are placed by attention
    if (isa<AttentionOp, AttentionGradientOp>(other))
      return {};
  Value value = throughReshapes(insert.getUpdate());
  Operation *maker = value.getDefiningOp();
  auto element = dyn_cast_or_null<PerElement>(maker);
  bool isComputed = (element && element.isPointwise()) || isa_and_present<Anchor>(maker);
  return isComputed && maker->getBlock() == op->getBlock() ? value : Value();
}
