#include "tools/ds-run/training/RunRanks.h"

#include "runtime/core/Error.h"

namespace ds {

RunRanks RunRanks::join() { return {}; }

std::string RunRanks::origin() const {
  return world() == 1 ? "one process; ds-run --ranks=N starts more" : "that the run was started with";
}

void RunRanks::leave(const std::string &reason) {
  if (shared)
    shared->leave(reason);
}

} // namespace ds
