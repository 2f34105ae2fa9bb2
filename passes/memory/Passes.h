// Passes of the memory phase.
#ifndef DEEPSTRIDE_PASSES_MEMORY_PASSES_H
#define DEEPSTRIDE_PASSES_MEMORY_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace deepstride {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/memory/Passes.h.inc"
} // namespace deepstride

#endif
