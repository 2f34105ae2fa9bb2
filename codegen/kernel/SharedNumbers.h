// Numbers that a kernel computes before its rows: of the extremes of what other kernels made, the scale and the zero
// point of codes. Each thread computes them again.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_SHAREDNUMBERS_H
#define DEEPSTRIDE_CODEGEN_KERNEL_SHAREDNUMBERS_H

#include "codegen/lower/KernelBuilder.h"

namespace deepstride {

/// A diagnostic where an op of the kernel that gives such a number cannot be computed.
llvm::LogicalResult verifySharedNumbers(KernelBuilder &k);

/// Where they lie, each in a buffer of one element.
using SharedNumbers = llvm::DenseMap<mlir::Value, mlir::Value>;

/// Computes those of the kernel, in scratch, which holds what its other ops read.
SharedNumbers emitSharedNumbers(KernelBuilder &k);

/// A kernel of nothing else, whose grid is one item.
llvm::LogicalResult lowerSharedNumbers(KernelBuilder &k);

} // namespace deepstride

#endif
