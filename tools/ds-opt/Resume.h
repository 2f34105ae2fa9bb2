// Compiling a program that --dump-dir wrote, perhaps edited since, from the phase behind it. What the later phases need
// beside the program is in an attribute of the dump: the phase, the options that decided it, the model it is of.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_RESUME_H
#define DEEPSTRIDE_TOOLS_DSOPT_RESUME_H

#include "codegen/cpu/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "tools/ds-opt/Options.h"

namespace deepstride {

/// On the module of a dump; no phase sees it.
inline constexpr llvm::StringLiteral compilationAttr = "ds.compilation";

/// Notes on a copy of the program how it came to be, and has it name its files so that any folder will do.
void recordCompilation(mlir::ModuleOp copy, Phase phase, const DriverOptions &options, const CpuTarget &target);

/// Where the input is a dump, completes the options by those that it was made with. Returns the exit code, after a
/// message where it is not 0.
int resumeOptions(DriverOptions &options);

/// Why a dump past the optimization phase cannot go on for this target; empty where it can.
std::string checkTarget(const DriverOptions &options, const CpuTarget &target);

} // namespace deepstride

#endif
