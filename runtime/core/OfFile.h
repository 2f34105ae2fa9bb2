// Errors of a file whose parts name themselves in full, or not.
#ifndef DEEPSTRIDE_RUNTIME_CORE_OFFILE_H
#define DEEPSTRIDE_RUNTIME_CORE_OFFILE_H

#include "runtime/core/Error.h"

#include <string>

namespace ds {

// Runs an action and puts "path: " before the message of an error that does not begin with the path, or with that of a
// file below it.
template <typename Action> auto ofFile(const std::string &path, Action action) -> decltype(action()) {
  try {
    return action();
  } catch (Error &error) {
    std::string text = error.what();
    bool isNamed =
        text.rfind(path, 0) == 0 && text.size() > path.size() && (text[path.size()] == ':' || text[path.size()] == '/');
    if (!isNamed)
      error.annotate(path);
    throw;
  }
}

} // namespace ds
#endif
