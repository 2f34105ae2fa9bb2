// Entries whose parameters, or their gradients, lie with the ranks that own them.
#ifndef DEEPSTRIDE_PASSES_TRAINING_SHAREPARAMETERS_H
#define DEEPSTRIDE_PASSES_TRAINING_SHAREPARAMETERS_H

#include "passes/training/Signature.h"
#include "passes/training/Update.h"

namespace deepstride {

/// Parameters of an entry become this rank's parts of the units, but for those that stay whole; a unit is gathered
/// before its first reader, as much of it as may be there ahead while the unit before it is read, and once more on the
/// way back (ZeRO stage 3, section 5.3): at most two units are there at a time, and those that are read again within
/// `sharing.maxReuse` elements. Sites are PREFIX/UNIT and PREFIX/backward/UNIT.
llvm::LogicalResult gatherParameters(mlir::func::FuncOp entry, llvm::ArrayRef<Unit> units,
                                     const SharingSettings &sharing, llvm::StringRef prefix);

/// Says of every state of every entry whether it lies in a unit, and where: as this rank's part alone, or in all of it.
void markStates(mlir::ModuleOp module, llvm::ArrayRef<Unit> units, llvm::ArrayRef<Parameter> parameters,
                llvm::ArrayRef<llvm::StringRef> optimizerStates, const SharingSettings &sharing);

} // namespace deepstride

#endif
