// A trace of launches for Perfetto and Chrome: modules as slices around those of their launches.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_MODULETRACE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_MODULETRACE_H

#include "tools/ds-run/Json.h"

namespace ds {

// One event per launch, with its nodes and roles, and one (of category "module") per module that consecutive launches
// work for most of all.
Json launchTrace(const Measured &measured);

} // namespace ds
#endif
