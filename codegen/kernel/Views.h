// Operands of an anchor that are seen through transposes, slices and reshapes of its kernel: strides and an offset, no
// copy.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_VIEWS_H
#define DEEPSTRIDE_CODEGEN_KERNEL_VIEWS_H

#include "codegen/lower/KernelBuilder.h"
#include "dialects/ds/StridedWindow.h"

namespace deepstride {

/// A window of an argument of a kernel.
struct ShownWindow {
  mlir::Value argument;
  ds::StridedWindow window;
};

/// The window of a buffer as loops walk it.
View viewOf(mlir::Value buffer, const ds::StridedWindow &window);

/// The window that a value of a kernel is of one of its arguments; none where it is computed, or where no strides reach
/// its elements. The same as a view of the argument's buffer.
std::optional<ShownWindow> operandWindow(KernelBuilder &k, mlir::Value value);
std::optional<View> operandView(KernelBuilder &k, mlir::Value value);

/// The window that a result of an op is of what the kernel yields: its own axes over the strides of a transpose behind
/// it, and of a cast and reshapes behind that. None where it is yielded in no such way.
std::optional<View> resultView(KernelBuilder &k, mlir::Value result);

/// What a value that a kernel yields is where it is computed: of an insertion, what it inserts.
mlir::Value computedOf(mlir::Value yielded);

/// Where the kernel stores result `number`, by the axes of what it computes of it: all of a buffer, or the box that an
/// insertion replaces; none where no strides reach it by these axes.
std::optional<ds::StridedWindow> storedWindow(KernelBuilder &k, unsigned number);

/// Whether all views walk two neighbouring axes, of which `inner` is the second one, without a gap.
bool areOneAxis(llvm::ArrayRef<View> views, size_t inner);

/// Makes one axis of them.
void joinAxes(llvm::MutableArrayRef<View> views, size_t inner);

} // namespace deepstride

#endif
