// Where a compilation stands, for who watches: a line on a terminal that changes in place, after two seconds.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_PROGRESS_H
#define DEEPSTRIDE_TOOLS_DSOPT_PROGRESS_H

#include "llvm/ADT/StringRef.h"

namespace deepstride {

/// Shows the stage that enterStage names while it lives. Where stderr is no terminal, it does nothing.
class Progress {
public:
  Progress();
  ~Progress();
  static bool isWatched();
};

/// Takes the line away, before something else is printed there; it comes back by itself.
void clearProgress();

} // namespace deepstride

#endif
