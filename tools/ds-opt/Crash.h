// What happens when ds-opt itself is wrong: exit code 3 and a file that shows how to get there again.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_CRASH_H
#define DEEPSTRIDE_TOOLS_DSOPT_CRASH_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace deepstride {

inline constexpr int internalErrorExit = 3;

/// From here on a fatal signal writes a reproducer with this command line and exits 3. These, and signals that a user
/// ends a process with, remove what is not complete.
void installCrashHandler(const std::string &commandLine);

/// Says where the work stands; part of the reproducer.
void enterStage(llvm::StringRef stage);
/// The stage that was entered last.
std::string currentStage();

/// A path for a reproducer of this process.
std::string reproducerPath(llvm::StringRef extension);

/// Prints the message about an internal error and its reproducer; returns the exit code.
int reportInternalError(llvm::StringRef what, llvm::StringRef reproducer);

} // namespace deepstride

#endif
