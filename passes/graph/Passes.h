// Passes of the graph phase.
#ifndef DEEPSTRIDE_PASSES_GRAPH_PASSES_H
#define DEEPSTRIDE_PASSES_GRAPH_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace deepstride {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/graph/Passes.h.inc"
} // namespace deepstride

#endif
