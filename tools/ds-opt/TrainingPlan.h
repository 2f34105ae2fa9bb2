// What a training takes and moves on each of several ranks, before it runs.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_TRAININGPLAN_H
#define DEEPSTRIDE_TOOLS_DSOPT_TRAININGPLAN_H

#include "tools/ds-opt/ModuleFile.h"
#include "tools/ds-opt/Options.h"

#include "mlir/IR/BuiltinOps.h"

namespace deepstride {

/// Of a program with planned buffers, as JSON: `mesh`, `stage`, `block`; `units` (name, elements, shard: what one rank
/// owns); `bytes` of a rank: parameters, gradients, optimizer, others (states), gathered (parameters of other ranks, at
/// most at a time), peak (all of it with activations, where the batch's dimensions are known); `places` and `files`
/// (FilePlan.h); `sites` (site, entry,
/// op, axis, codec, type, elements, and calls, sent and received of one step; an evaluation's have no calls). Bytes are
/// payload, and for the ranks of the mesh, one where it is open. Ranks are alike, but where a unit travels in several
/// messages: these are the first one's, the others send as much in all. Fails after a message.
llvm::LogicalResult writeTrainingPlan(mlir::ModuleOp program, const DriverOptions &options);

/// The plan where it is asked for, or else the program as text.
llvm::LogicalResult writeResult(mlir::ModuleOp program, const DriverOptions &options, bool withLocations);

} // namespace deepstride

#endif
