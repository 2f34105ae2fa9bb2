// Elementwise ops of a kernel, computed together of one element of each operand.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_POINTWISEOPS_H
#define DEEPSTRIDE_CODEGEN_KERNEL_POINTWISEOPS_H

#include "codegen/lower/KernelBuilder.h"

namespace deepstride {

/// What the ops, in order, give of `elements` of `operands`, as they are stored. Constants need not be among those.
llvm::DenseMap<mlir::Value, mlir::Value> emitPointwiseOps(KernelBuilder &k, mlir::OpBuilder &b,
                                                          llvm::ArrayRef<mlir::Operation *> ops,
                                                          llvm::ArrayRef<mlir::Value> operands,
                                                          mlir::ValueRange elements);

} // namespace deepstride

#endif
