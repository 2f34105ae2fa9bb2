// Operands of an anchor that are seen through transposes, slices and reshapes of its kernel: strides and an offset, no
// copy.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_VIEWS_H
#define DEEPSTRIDE_CODEGEN_KERNEL_VIEWS_H

#include "codegen/lower/KernelBuilder.h"

namespace deepstride {

/// The window that a value of a kernel is of one of its arguments; none where it is computed, or where no strides reach
/// its elements.
std::optional<View> operandView(KernelBuilder &k, mlir::Value value);

/// The window that a result of an op is of what the kernel yields: its own axes over the strides of a transpose behind
/// it, and of a cast and reshapes behind that. None where it is yielded in no such way.
std::optional<View> resultView(KernelBuilder &k, mlir::Value result);

/// Whether all views walk two neighbouring axes, of which `inner` is the second one, without a gap.
bool areOneAxis(llvm::ArrayRef<View> views, size_t inner);

/// Makes one axis of them.
void joinAxes(llvm::MutableArrayRef<View> views, size_t inner);

} // namespace deepstride

#endif
