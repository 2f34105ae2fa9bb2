// The proof that a buffer plan computes what the program says: an interpreter of launches over what buffers hold.
#ifndef DEEPSTRIDE_PASSES_MEMORY_VERIFYPLAN_H
#define DEEPSTRIDE_PASSES_MEMORY_VERIFYPLAN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace deepstride {

/// Follows an entry after ds-plan-buffers through all branches and any number of iterations. Every read must find the
/// value that the program names, whatever the runtime makes of bytes whose buffers are dead; every write must have one
/// owner and fit. Calls back once per violation. Knows nothing of how the plan was made.
void verifyPlan(mlir::func::FuncOp entry, llvm::function_ref<void(mlir::Operation *, const llvm::Twine &)> violation);

} // namespace deepstride

#endif
