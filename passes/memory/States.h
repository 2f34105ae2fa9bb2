// What the memory phase needs of states: an argument and a result of one name, in one buffer.
#ifndef DEEPSTRIDE_PASSES_MEMORY_STATES_H
#define DEEPSTRIDE_PASSES_MEMORY_STATES_H

#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace deepstride {

/// Old and new value of a state share a buffer, so there is one of each and they are alike.
mlir::LogicalResult checkStates(mlir::func::FuncOp function, const SizeAnalysis &analysis);

} // namespace deepstride

#endif
