// ds-opt IN.mlir --some-pass --verify-numerics: does the program compute the same before and after the passes?
#ifndef DEEPSTRIDE_TOOLS_DSOPT_VERIFYNUMERICS_H
#define DEEPSTRIDE_TOOLS_DSOPT_VERIFYNUMERICS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

namespace deepstride {

/// Runs the configured passes on each chunk of the file, writes the results as mlir-opt would, and compares programs
/// before and after on random inputs: with different sizes for different dimensions, then with all sizes 1, then 0,
/// where the program admits them. The passes see states; what is run takes and gives them like other tensors. The
/// program before is compiled without folding. Returns the exit code: 0 where all agree, 1 where results differ, where
/// only one of the two programs runs, or where there is nothing to run.
int verifyNumerics(llvm::StringRef input, llvm::StringRef output, mlir::DialectRegistry &registry,
                   const mlir::MlirOptMainConfig &config, llvm::StringRef runTool);

} // namespace deepstride

#endif
