// The gates of blocks that training drops: what ds-gate-layers makes, and what becomes of it in the entries of
// training.
#ifndef DEEPSTRIDE_PASSES_TRAINING_LAYERS_H
#define DEEPSTRIDE_PASSES_TRAINING_LAYERS_H

#include "passes/training/Parameters.h"
#include "passes/training/Signature.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace deepstride {

/// On an `scf.if` of ds-gate-layers: the number of its block.
inline constexpr llvm::StringLiteral layerAttr = "ds.layer";
/// On a module: the names of the blocks, in order.
inline constexpr llvm::StringLiteral layersAttr = "ds.layers";

/// Inputs of one block, without axes, by name: "layer_gate/3".
inline constexpr llvm::StringLiteral layerGate = "layer_gate/";   // i1: whether the block runs
inline constexpr llvm::StringLiteral layerScale = "layer_scale/"; // what it adds is multiplied by: 1 / p
inline constexpr llvm::StringLiteral layerFirst = "layer_first/"; // i1: its gradients begin here
inline constexpr llvm::StringLiteral layerRan = "layer_ran/";     // i1, of an update: it has gradients

std::string nameOfLayer(llvm::StringRef kind, int64_t layer);

/// The gated blocks of a function by number; empty where none are.
llvm::SmallVector<mlir::scf::IfOp> gatedLayers(mlir::func::FuncOp function);

/// For evaluation: every block runs, as if it had never been gated.
void removeGates(mlir::func::FuncOp eval);

/// The gradients of parameters that only a block reads are added up in its branch of the way back: where the block is
/// dropped, nothing is written. Made before the sweep, of a function whose blocks are gated.
class LayerGradients {
public:
  LayerGradients(mlir::func::FuncOp micro, llvm::ArrayRef<Parameter> parameters);

  /// Makes of a branch's result, the gradient of a parameter, the next value of the state `before`: the gradient where
  /// the block runs for the first time in a step (`accumulates`: else it always does), the sum where it has run
  /// before, and `before` itself where it is dropped. False where the gradient is none of one block's; nothing has
  /// changed then.
  bool addUp(const Parameter &parameter, mlir::Value gradient, mlir::Value before, bool accumulates,
             Signature &signature, DsBuilder &b);

  /// The block of each parameter whose gradient was made so.
  const llvm::StringMap<int64_t> &layers() const { return added; }

private:
  llvm::DenseMap<mlir::Value, int64_t> owners;     // parameters that one block alone reads
  llvm::DenseMap<int64_t, mlir::Value> conditions; // of blocks
  llvm::DenseMap<int64_t, mlir::Value> firsts;
  llvm::StringMap<int64_t> added;
};

} // namespace deepstride

#endif
