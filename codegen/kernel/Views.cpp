// Follows transposes, slices and reshapes between an anchor and the buffers of its kernel.
#include "codegen/kernel/Views.h"

using namespace mlir;

namespace deepstride {

View viewOf(Value buffer, const ds::StridedWindow &window) {
  View view{buffer, window.offset, {}};
  for (auto [size, stride] : llvm::zip_equal(window.sizes, window.strides))
    view.axes.push_back({size, stride, true, std::nullopt});
  return view;
}

std::optional<ShownWindow> operandWindow(KernelBuilder &k, Value value) {
  SmallVector<Operation *> ops;
  while (ds::isWindowOp(value.getDefiningOp())) {
    ops.push_back(value.getDefiningOp());
    value = ops.back()->getOperand(0);
  }
  if (!isa<BlockArgument>(value))
    return std::nullopt;
  std::optional<ds::StridedWindow> window = ds::StridedWindow::whole(k.sizesOf(value));
  for (Operation *op : llvm::reverse(ops)) {
    auto slice = dyn_cast<ds::SliceOp>(op);
    SizeVector starts = slice ? *sizesFromAttribute(slice.getStarts()) : SizeVector();
    window = ds::windowThrough(op, *window, k.sizesOf(op->getResult(0)), starts);
    if (!window)
      return std::nullopt;
  }
  return ShownWindow{value, std::move(*window)};
}

std::optional<View> operandView(KernelBuilder &k, Value value) {
  auto shown = operandWindow(k, value);
  return shown ? std::optional(viewOf(k.bufferOf(shown->argument), shown->window)) : std::nullopt;
}

std::optional<View> resultView(KernelBuilder &k, Value result) {
  for (auto [number, yielded] : llvm::enumerate(k.yielded())) {
    Value value = yielded; // as it is stored: rounded, its axes joined
    while (isa_and_present<ds::CastOp, ds::ReshapeOp>(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    View view = viewOf(k.outputBuffer(number), ds::StridedWindow::whole(k.sizesOf(value)));
    if (value == result)
      return view;
    auto transpose = value.getDefiningOp<ds::TransposeOp>();
    if (!transpose || transpose.getInput() != result)
      continue;
    View moved = view;
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      moved.axes[from] = view.axes[to];
    return moved;
  }
  return std::nullopt;
}

Value computedOf(Value yielded) {
  Value inserted = ds::insertedResult(yielded.getDefiningOp());
  return inserted ? inserted : yielded;
}

std::optional<ds::StridedWindow> storedWindow(KernelBuilder &k, unsigned number) {
  Value yielded = k.yielded()[number], value = computedOf(yielded);
  if (value == yielded)
    return ds::StridedWindow::whole(k.sizesOf(value));
  auto insert = yielded.getDefiningOp<ds::InsertOp>();
  SizeVector starts = *sizesFromAttribute(insert.getStarts());
  return ds::reshapedWindow(ds::insertedBox(k.sizesOf(insert.getInto()), k.sizesOf(insert.getUpdate()), starts),
                            k.sizesOf(value));
}

bool areOneAxis(ArrayRef<View> views, size_t inner) {
  return llvm::all_of(views, [&](const View &view) {
    const Axis &first = view.axes[inner - 1], &second = view.axes[inner];
    return !first.guard && !second.guard && first.present == second.present &&
           (!first.present || first.stride == second.stride * second.size);
  });
}

void joinAxes(MutableArrayRef<View> views, size_t inner) {
  for (View &view : views) {
    view.axes[inner - 1].stride = view.axes[inner].stride;
    view.axes[inner - 1].size = view.axes[inner - 1].size * view.axes[inner].size;
    view.axes.erase(view.axes.begin() + static_cast<int64_t>(inner));
  }
}

} // namespace deepstride
