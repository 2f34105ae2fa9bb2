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

/// Whether what is to be read is a folder, or a device that can be read without end, as /dev/zero, which is said.
/// Terminals, pipes and /dev/null end.
bool isNoFile(llvm::StringRef path);

} // namespace deepstride

#endif
