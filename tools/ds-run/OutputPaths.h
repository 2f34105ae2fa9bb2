// Files that a command is to write: none may take the place of another, or of a part of a package.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_OUTPUTPATHS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_OUTPUTPATHS_H

#include "tools/ds-run/training/TrainOptions.h"

namespace ds {

// Of all options that name files to be written. Devices and pipes may be named twice. Throws Error(InvalidArgument)
// where two name one file, or one a file in the folder of a package, whose sums no other file may change.
void checkOutputPaths(const Options &options, const TrainOptions &training);

} // namespace ds
#endif
