// Which weights move a model's results most when they are rounded, as far as the program alone tells.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_SENSITIVEWEIGHTS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_SENSITIVEWEIGHTS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace deepstride {

/// The recipes of weights that can be quantized and that ds-quantize-weights calls sensitive, each with the reason.
llvm::DenseMap<mlir::Attribute, llvm::StringRef> sensitiveWeights(mlir::ModuleOp module, const std::string &keep);

} // namespace deepstride

#endif
