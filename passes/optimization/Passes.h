// Passes of the optimization phase.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_PASSES_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace deepstride {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

#endif
