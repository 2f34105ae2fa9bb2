// Copies for ds-outline-kernels: where a value must end up in a buffer that is decided elsewhere (an output, a state,
// what a branch or a loop yields), it has a kernel of its own that writes it there, or a copy does.
#ifndef DEEPSTRIDE_PASSES_MEMORY_BUFFERCOPIES_H
#define DEEPSTRIDE_PASSES_MEMORY_BUFFERCOPIES_H

#include "dialects/ds/StridedWindow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace deepstride {

/// Bytes that an element has in memory; of types below a byte, one.
inline int64_t elementBytes(mlir::Type type) {
  return (mlir::getElementTypeOrSelf(type).getIntOrFloatBitWidth() + 7) / 8;
}

/// Kernels that read nothing but the element they write, so that both may lie in one buffer.
bool isElementwise(mlir::Operation *op);

/// The operand that an insert or a scatter changes in place: the value, its result, has the same buffer. The op may
/// stand in a region that yields its result. Null for other values.
mlir::OpOperand *updateTarget(mlir::Value value);

/// Whether the result of a fused region is what its kernel has computed, put into a part of a buffer of its own.
bool isInserted(mlir::OpResult result);

/// Inserts the copies, each with a remark that says why, and returns their number; afterwards ds-plan-buffers can give
/// every value one buffer.
unsigned insertCopies(mlir::func::FuncOp function, SizeAnalysis &analysis);

} // namespace deepstride

#endif
