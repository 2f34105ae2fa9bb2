// What the ops of a kernel do for each node of the model: the attribute `work` of launches, which profiles are made of.
#ifndef DEEPSTRIDE_PASSES_MEMORY_NODEWORK_H
#define DEEPSTRIDE_PASSES_MEMORY_NODEWORK_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

/// Multiply-add operations and operations of one op, by formulas over its sizes, not by what a kernel may skip.
struct OpWork {
  SizeExpr macs, flops;
  SizeExpr again;         // of the macs, what the way there computed already
  bool mayBeLess = false; // a kernel leaves out what a window hides
};
OpWork workOf(mlir::Operation *op, llvm::function_ref<SizeVector(mlir::Value)> sizesOf);

/// For each node, parameter or part that ops of the body work for, in each role: {op, node | parameter | part, role,
/// macs, flops, bytes, may_be_less}. `operands` are in memory, and so is what is yielded.
mlir::ArrayAttr nodeWork(mlir::MLIRContext *context, llvm::ArrayRef<mlir::Operation *> body,
                         llvm::ArrayRef<mlir::Value> operands, mlir::ValueRange yielded,
                         llvm::function_ref<SizeVector(mlir::Value)> sizesOf);

} // namespace deepstride

#endif
