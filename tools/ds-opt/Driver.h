// The driver: runs the phases over a model and writes what was asked for.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_DRIVER_H
#define DEEPSTRIDE_TOOLS_DSOPT_DRIVER_H

#include "tools/ds-opt/Options.h"

namespace deepstride {

/// Returns the exit code; everything there is to say was printed.
int runDriver(DriverOptions options);

} // namespace deepstride

#endif
