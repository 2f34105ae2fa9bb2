// The units of ZeRO: which parameters lie one behind another, and are shared among ranks together.
#ifndef DEEPSTRIDE_PASSES_TRAINING_UNITS_H
#define DEEPSTRIDE_PASSES_TRAINING_UNITS_H

#include "dialects/dist/DistDialect.h"
#include "passes/training/Parameters.h"

namespace deepstride {

/// Of the module: its units, an array of {name, block, elements, tensors = [{name, offset, shape, initial}]}.
inline constexpr llvm::StringLiteral unitsAttr = "ds.units";
/// On the argument of a state: the name of its unit, and as which part it lies there: "tensor", "view" (what this rank
/// owns, of memory that has all), or "shard" (what this rank owns, alone). `suffixAttr`: behind the unit's names.
inline constexpr llvm::StringLiteral unitAttr = "ds.unit", partAttr = "ds.part", suffixAttr = "ds.suffix";

/// Elements of which a tensor begins at a multiple, and of which ranks own a number.
inline constexpr int64_t unitBlock = 64;

struct Unit {
  std::string name;
  mlir::Type element;
  llvm::SmallVector<unsigned> parameters; // indices, in the order of the space
  llvm::SmallVector<int64_t> offsets;
  int64_t elements = 0;

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

/// What the manifest says of units.
mlir::ArrayAttr describeUnits(mlir::func::FuncOp model, const SizeAnalysis &analysis, llvm::ArrayRef<Unit> units);

} // namespace deepstride

#endif
