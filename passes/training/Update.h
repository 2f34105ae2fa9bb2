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

/// What micro-batches do with states besides adding up gradients.
struct MicroStates {
  const llvm::StringSet<> &moved;         // names of running statistics that they move
  const llvm::StringMap<int64_t> &layers; // of parameters whose gradients a block does not write when it is dropped
};

/// Appends to the module an entry `update` of all parameters of `model`, whose facts `analysis` knows: learning_rate,
/// momentum, step and loss_scale, all f64, and the states, to grad_norm and finite, and the next states. Gradients are
/// loss_scale times what the norm is of. Running statistics of which `micro.moved` has the names become what NAME/moved
/// holds. Gradients of a block l count where layer_ran/l holds, and are 0 elsewhere. Where the norm is not finite,
/// every state stays.
llvm::LogicalResult buildUpdate(mlir::func::FuncOp model, const SizeAnalysis &analysis, const UpdateSettings &settings,
                                const MicroStates &micro);

} // namespace deepstride

#endif
