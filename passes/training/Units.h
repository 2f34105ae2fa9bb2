// The units of ZeRO: which parameters lie one behind another, and are shared among ranks together.
#ifndef DEEPSTRIDE_PASSES_TRAINING_UNITS_H
#define DEEPSTRIDE_PASSES_TRAINING_UNITS_H

#include "dialects/dist/DistDialect.h"
#include "dialects/ds/UnitAttrs.h"
#include "passes/training/Parameters.h"

namespace deepstride {

/// Elements of which a tensor begins at a multiple, and of which ranks own a number.
inline constexpr int64_t unitBlock = 64;

struct Unit {
  std::string name;
  mlir::Type element;
  llvm::SmallVector<unsigned> parameters; // indices, in the order of the space
  llvm::SmallVector<int64_t> offsets;
  int64_t elements = 0, block = unitBlock;

  /// With elements [begin, end) of the space: all of it without.
  mlir::Attribute layout(mlir::MLIRContext *context) const;
  SizeExpr shard() const;
  std::string stateName(llvm::StringRef suffix = "") const;
};

/// Blocks by structure: what is first read between one self-attention's projections and the next one's, "block 0" and
/// so on; before is "embeddings", behind the last is "head"; without attention, a product with its bias and norms each.
/// Parameters for which `isApart` holds have units of their own.
llvm::SmallVector<Unit> findUnits(mlir::func::FuncOp model, const SizeAnalysis &analysis,
                                  llvm::function_ref<bool(llvm::StringRef name)> isApart);

/// What ds.units says (dialects/ds/UnitAttrs.h).
mlir::ArrayAttr describeUnits(mlir::func::FuncOp model, const SizeAnalysis &analysis, llvm::ArrayRef<Unit> units);

} // namespace deepstride

#endif
