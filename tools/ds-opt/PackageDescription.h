// What a package says of the options that it was made with.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_PACKAGEDESCRIPTION_H
#define DEEPSTRIDE_TOOLS_DSOPT_PACKAGEDESCRIPTION_H

#include "codegen/Package.h"
#include "tools/ds-opt/Options.h"

namespace deepstride {

PackageOptions describeOptions(const DriverOptions &options);

} // namespace deepstride

#endif
