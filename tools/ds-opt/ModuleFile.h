// A module as text in a file.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_MODULEFILE_H
#define DEEPSTRIDE_TOOLS_DSOPT_MODULEFILE_H

#include "mlir/IR/BuiltinOps.h"

namespace deepstride {

/// Writes under a temporary name and renames, so that a reader never sees half a file; devices and pipes are written
/// to, and an empty path or `-` is the standard output, where main looks whether it arrived. Says why it failed, and
/// yields false.
bool writeModule(mlir::ModuleOp program, llvm::StringRef path, bool withLocations);
/// The same for any text.
bool writeText(llvm::StringRef text, llvm::StringRef path);

/// Whether a file is a device that can be read without end, as /dev/zero, which is said: who reads all of a file must
/// know. Terminals, pipes and /dev/null end.
bool isEndless(llvm::StringRef path);

} // namespace deepstride

#endif
