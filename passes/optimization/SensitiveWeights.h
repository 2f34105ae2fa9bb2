// Which weights move a model's results most when they are rounded, as far as the program alone tells.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_SENSITIVEWEIGHTS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_SENSITIVEWEIGHTS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace deepstride {

/// The recipes of weights that can be quantized and that ds-quantize-weights calls sensitive, each with the reason.
/// Where finer steps keep the type of codes (`keepsType`), what is multiplied beside the values of an attention is one
/// of them: the three are joined then, and scales are all that it costs.
llvm::DenseMap<mlir::Attribute, llvm::StringRef> sensitiveWeights(mlir::ModuleOp module, const std::string &keep,
                                                                  bool keepsType);

} // namespace deepstride

#endif
