// What ds-run says on stderr: one line a message, whatever names and paths are in it.
#ifndef DEEPSTRIDE_TOOLS_DSRUN_MESSAGES_H
#define DEEPSTRIDE_TOOLS_DSRUN_MESSAGES_H

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

#include <cstdio>

namespace ds {

template <typename... Parts> void printMessage(const Parts &...parts) {
  std::fprintf(stderr, "ds-run: %s\n", oneLine(concat(parts...)).c_str());
}

} // namespace ds
#endif
