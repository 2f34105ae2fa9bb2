// What a package says of the options that it was made with.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_PACKAGEDESCRIPTION_H
#define DEEPSTRIDE_TOOLS_DSOPT_PACKAGEDESCRIPTION_H

#include "codegen/Package.h"
#include "tools/ds-opt/Options.h"

namespace deepstride {

/// What --dim says, as it was given, sorted.
std::vector<std::string> dimTexts(const DriverOptions &options);
PackageOptions describeOptions(const DriverOptions &options);

} // namespace deepstride

#endif
