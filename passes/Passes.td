// Passes that belong to no one phase.
#ifndef DEEPSTRIDE_PASSES_TD
#define DEEPSTRIDE_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyContract : Pass<"ds-verify-contract", "::mlir::ModuleOp"> {
  let summary = "check what a phase promises to the next one";
  let description = [{
    Stands at the end of every phase. Each violation is an error that names op, location and rule; all of them are
    reported before the pass fails. Changes nothing.
  }];
  let options = [Option<"phase", "phase", "std::string", "", "the phase whose contract is checked">];
}

#endif
