// Entries whose parameters, or their gradients, lie with the ranks that own them.
#ifndef DEEPSTRIDE_PASSES_TRAINING_SHAREPARAMETERS_H
#define DEEPSTRIDE_PASSES_TRAINING_SHAREPARAMETERS_H

#include "passes/training/Signature.h"
#include "passes/training/Units.h"

namespace deepstride {

/// Parameters of an entry become this rank's parts of the units; a unit is gathered before its first reader, begun
/// while the unit before it is read, and once more on the way back (ZeRO stage 3, section 5.3): at most two units are
/// there at a time. Sites are PREFIX/UNIT and PREFIX/backward/UNIT.
llvm::LogicalResult gatherParameters(mlir::func::FuncOp entry, llvm::ArrayRef<Unit> units, llvm::StringRef prefix);

/// Adds up over ranks, where they are complete, the gradients of each unit, of which each rank keeps its part in a
/// state; `isFirst` starts a step anew where it is not null. A message is on its way while the gradients of the next
/// unit are computed (stage 2, section 5.2).
llvm::LogicalResult scatterGradients(DsBuilder &b, Signature &signature, llvm::ArrayRef<Unit> units,
                                     llvm::ArrayRef<mlir::Value> gradients, mlir::Value isFirst);

/// Says of every state of every entry whether it lies in a unit, and where. `areParametersShared`: each rank has its
/// part of the parameters alone.
void markStates(mlir::ModuleOp module, llvm::ArrayRef<Unit> units, llvm::ArrayRef<Parameter> parameters,
                llvm::ArrayRef<llvm::StringRef> optimizerStates, bool areParametersShared);

} // namespace deepstride

#endif
