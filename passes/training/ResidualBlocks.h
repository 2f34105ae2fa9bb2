// The blocks of a model, found by their structure: what is added to a residual stream, time and again.
#ifndef DEEPSTRIDE_PASSES_TRAINING_RESIDUALBLOCKS_H
#define DEEPSTRIDE_PASSES_TRAINING_RESIDUALBLOCKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace deepstride {

/// output = input + what is computed of it, in one or more residual sums: attention and feed-forward network together.
struct ResidualBlock {
  mlir::Value input, output;
  /// All that only the block needs, in the order of the function; the last sum, which is the output, among them.
  llvm::SetVector<mlir::Operation *> ops;
  /// What is added to the stream: operands of sums of the block.
  llvm::SmallVector<mlir::OpOperand *> added;
  /// What is read elsewhere of it, the output apart, and what is judged does not depend on.
  llvm::SmallVector<mlir::Value> escaping;
  std::string name; // the scope that names of its ONNX nodes share, "block 3", or both
};

struct ResidualBlocks {
  llvm::SmallVector<ResidualBlock> blocks; // in the order of the function
  mlir::Operation *postNorm = nullptr;     // a norm of a residual sum on which the next one builds, if there is one
  std::string nearest;                     // where no blocks were found: why what comes near is none
};

/// Blocks of pre-norm form: a residual sum is what the next one adds to, and nothing that `judged` depends on reads
/// what a block computes on its way ("switchable transformer", Zhang and He, 2010.13369). Blocks repeat: they have the
/// same ops in the same order. A single one needs an attention.
ResidualBlocks findResidualBlocks(mlir::func::FuncOp entry, mlir::ValueRange judged);

} // namespace deepstride

#endif
