// What ds-opt says on stderr beside diagnostics: one line a message, whatever names and paths are in it.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_MESSAGE_H
#define DEEPSTRIDE_TOOLS_DSOPT_MESSAGE_H

#include "runtime/core/Text.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

namespace deepstride {

inline std::string asLine(const llvm::Twine &message) { return ::ds::oneLine(message.str()) + "\n"; }
inline void printMessage(const llvm::Twine &message) { llvm::errs() << asLine(message); }

} // namespace deepstride

#endif
