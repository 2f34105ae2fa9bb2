// Regular expressions over names of weights and nodes, as users give them to --train, --freeze and keep=.
#ifndef DEEPSTRIDE_PASSES_NAMEPATTERN_H
#define DEEPSTRIDE_PASSES_NAMEPATTERN_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace deepstride {

/// Why names cannot be matched with an expression; empty where they can. Besides what is no extended regular expression
/// these are those that repeat repetitions: compiling one copies what `{m,n}` repeats, so that `((a{255}){255}){255}`
/// would take all memory.
std::string reasonAgainstPattern(llvm::StringRef expression);

} // namespace deepstride

#endif
