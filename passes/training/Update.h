// The entry that updates parameters: the norm of all gradients, clipping, the optimizer, if everything is finite.
#ifndef DEEPSTRIDE_PASSES_TRAINING_UPDATE_H
#define DEEPSTRIDE_PASSES_TRAINING_UPDATE_H

#include "passes/training/Units.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace deepstride {

/// What ranks share of a training (ZeRO, Rajbhandari et al. 1910.02054, section 5).
struct SharingSettings {
  int64_t stage =
      0; // 1: each rank updates its part of the parameters; 2: and keeps that of gradients; 3: of parameters
  int64_t bucket = int64_t(1) << 53;       // elements of gradients in one message, unless one tensor has more
  int64_t gatherBucket = int64_t(1) << 53; // of parameters, likewise
  bool overlaps = true;                    // messages travel while something else is computed
  // Elements, of stage 3: gathered ahead of their use; there at a time, beside what is being read; of tensors that stay
  // whole, and of all of these together.
  int64_t prefetch = int64_t(1) << 53, maxLive = int64_t(1) << 53, persistence = 0, modelPersistence = 0;
  int64_t maxReuse = 0; // a unit stays that is read again behind fewer elements of others

  bool hasSparseTables = false; // of tables, rows that are touched travel alone
  mlir::Type wire = {};         // that gradients travel in where it is narrower than theirs
  mlir::Type gradients = {};    // that they are kept in where it is narrower than parameters are

  mlir::FloatType rounded = {}; // what is read of parameters; null: all of them

  bool areStatesShared() const { return stage >= 1; }
  bool areGradientsShared() const { return stage >= 2; }
  bool areParametersShared() const { return stage >= 3; }
  /// In which the gradients of parameters of a type are added up.
  mlir::Type gradientOf(mlir::Type parameter) const {
    bool isNarrower = gradients && gradients.getIntOrFloatBitWidth() < parameter.getIntOrFloatBitWidth();
    return isNarrower ? gradients : parameter;
  }
  bool isShared(const Unit &unit) const { return areParametersShared() && !unit.staysWhole; }
};

struct UpdateSettings {
  OptimizerSettings optimizer;
  double clip = 0;              // greatest norm of all gradients; 0: any
  llvm::StringRef noDecay = {}; // regular expression: parameters that do not decay
  SharingSettings sharing;
};

/// What micro-batches do with states besides adding up gradients.
struct MicroStates {
  const llvm::StringSet<> &moved;         // names of running statistics that they move
  const llvm::StringMap<int64_t> &layers; // of parameters whose gradients a block does not write when it is dropped
  llvm::ArrayRef<Unit> units;             // where states are shared
};

/// Appends to the module an entry `update` of all parameters of `model`, whose facts `analysis` knows: learning_rate,
/// momentum, step and loss_scale, all f64, and the states, to grad_norm and finite, and the next states. Gradients are
/// loss_scale times what the norm is of. Running statistics of which `micro.moved` has the names become what NAME/moved
/// holds. Gradients of a block l count where layer_ran/l holds, and are 0 elsewhere. Where the norm is not finite,
/// every state of the optimizer stays.
///
/// Gradients are the sums of all ranks.
/// Where states are shared, each rank has its part of the optimizer's states of a unit, updates that part of the
/// unit's parameters, and gets the others from the ranks that have them, unless these are shared, too.
llvm::LogicalResult buildUpdate(mlir::func::FuncOp model, const SizeAnalysis &analysis, const UpdateSettings &settings,
                                const MicroStates &micro);

} // namespace deepstride

#endif
