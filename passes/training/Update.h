// The entry that updates parameters: the norm of all gradients, clipping, the optimizer, if everything is finite.
#ifndef DEEPSTRIDE_PASSES_TRAINING_UPDATE_H
#define DEEPSTRIDE_PASSES_TRAINING_UPDATE_H

#include "passes/training/Parameters.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace deepstride {

struct UpdateSettings {
  OptimizerSettings optimizer;
  double clip = 0;              // greatest norm of all gradients; 0: any
  llvm::StringRef noDecay = {}; // regular expression: parameters that do not decay
};

/// Appends to the module an entry `update` of all parameters of `model`, whose facts `analysis` knows: learning_rate,
/// momentum, step and loss_scale, all f64, and the states, to grad_norm and finite, and the next states. Gradients are
/// loss_scale times what the norm is of. Running statistics of which `moved` has the names become what NAME/moved
/// holds. Where the norm is not finite, every state stays.
llvm::LogicalResult buildUpdate(mlir::func::FuncOp model, const SizeAnalysis &analysis, const UpdateSettings &settings,
                                const llvm::StringSet<> &moved);

} // namespace deepstride

#endif
