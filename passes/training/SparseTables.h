// Tables of which only rows are read: what their gradients touch is few of these, and travels alone.
#ifndef DEEPSTRIDE_PASSES_TRAINING_SPARSETABLES_H
#define DEEPSTRIDE_PASSES_TRAINING_SPARSETABLES_H

#include "passes/training/Units.h"

namespace deepstride {

/// The parameters, by number, that gathers along the first axis alone read, directly or cast. A warning says of each
/// other one that such a gather reads why its gradient travels as a whole, and where there is none at all.
llvm::DenseSet<unsigned> findSparseTables(mlir::func::FuncOp micro, const SizeAnalysis &analysis, int64_t stage);

/// The units without these parameters, and one of its own for each, which has its name.
llvm::SmallVector<Unit> setTablesApart(mlir::func::FuncOp micro, const SizeAnalysis &analysis,
                                       llvm::ArrayRef<Unit> units, const llvm::DenseSet<unsigned> &tables);

} // namespace deepstride

#endif
