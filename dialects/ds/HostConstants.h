// Why what constants decide is not known when a model is compiled.
#ifndef DEEPSTRIDE_DIALECTS_DS_HOSTCONSTANTS_H
#define DEEPSTRIDE_DIALECTS_DS_HOSTCONSTANTS_H

#include "dialects/ds/HostTensor.h"

namespace deepstride {

/// Of a value that depends on constants alone and is not evaluated all the same: the op that is in the way. Null where
/// the value depends on data.
mlir::Operation *findObstacle(mlir::Value value, SizeAnalysis &analysis);

} // namespace deepstride

#endif
