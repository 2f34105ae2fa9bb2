// Passes that belong to no one phase, and the registration of all of ours.
#ifndef DEEPSTRIDE_PASSES_PASSES_H
#define DEEPSTRIDE_PASSES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace deepstride {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// Every pass and pipeline of the folder `passes`, for tools with pass options on their command line.
void registerAllDeepstridePasses();

} // namespace deepstride

#endif
