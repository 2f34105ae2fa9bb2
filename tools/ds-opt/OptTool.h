// ds-opt as an mlir-opt.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_OPTTOOL_H
#define DEEPSTRIDE_TOOLS_DSOPT_OPTTOOL_H

namespace deepstride {

/// Returns the exit code.
int runOptTool(int argc, char **argv);

} // namespace deepstride

#endif
