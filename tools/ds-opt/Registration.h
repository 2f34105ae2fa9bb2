// Everything that ds-opt knows: dialects, passes, pipelines, ours and upstream's.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_REGISTRATION_H
#define DEEPSTRIDE_TOOLS_DSOPT_REGISTRATION_H

#include "mlir/IR/DialectRegistry.h"

namespace deepstride {

void registerDialects(mlir::DialectRegistry &registry);
void registerAllPassesAndPipelines();

} // namespace deepstride

#endif
