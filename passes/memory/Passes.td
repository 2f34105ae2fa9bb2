// Passes of the memory phase: from fused regions to kernels, from values to buffers.
#ifndef DEEPSTRIDE_PASSES_MEMORY_TD
#define DEEPSTRIDE_PASSES_MEMORY_TD

include "mlir/Pass/PassBase.td"

def OutlineKernels : Pass<"ds-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "turn every compute op and fused region into a kernel and a launch";
  let description = [{
    Each `ds.fused`, and each compute op outside of one, moves into a `ds.kernel` over its own size symbols; equal
    kernels are shared. Reshapes stay as views, constants that a kernel does not embed become weights. A value that ends
    in a state, an output, what a loop carries or a branch's result is written there at once; where something still
    reads the old value, a copy is made and a remark says why. Numerically a no-op.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def PlanBuffers : Pass<"ds-plan-buffers", "::mlir::ModuleOp"> {
  let summary = "give every value between kernels a buffer with role, size and lifetime";
  let description = [{
    Writes the plan as attributes: `ds.buffers` on entry functions (role, size expression, first and last launch) and
    `buffers` on launches and collectives. States are updated in place where the launch allows it. Numerically a no-op.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

#endif
