// What a program that trains changes, as the writer of its graph asks for it.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_LEARNED_H
#define DEEPSTRIDE_TOOLS_DSOPT_LEARNED_H

#include "codegen/Package.h"
#include "frontends/onnx/reader/TrainedGraph.h"
#include "mlir/IR/BuiltinOps.h"
#include "tools/ds-opt/Options.h"

namespace deepstride {

/// Parameters and running statistics, and the weights that are tied to them.
std::vector<onnx::LearnedTensor> learnedTensors(mlir::ModuleOp module);

/// Of the weight of --head; 0 where there is none that is trained.
int64_t headFeatures(mlir::ModuleOp module);

/// A package that trains keeps the model's graph, so that what it has learned can be written as ONNX again. False after
/// a diagnostic.
bool keepGraph(mlir::ModuleOp module, const DriverOptions &options, PackageWriter &package);

} // namespace deepstride

#endif
