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
  mlir::Type rounded;                     // of what is read; null: as the element
  llvm::SmallVector<unsigned> parameters; // indices, in the order of the space
  llvm::SmallVector<int64_t> offsets;
  int64_t elements = 0, block = unitBlock;
  bool staysWhole = false; // each rank has all of its parameters, even where they are shared
  bool isSparse = false;   // one table, of whose gradient only rows that are touched travel

  /// Of parameters [first, last), and the range from the first one's beginning to the next one's, or to the end.
  mlir::Attribute layout(mlir::MLIRContext *context, size_t first, size_t last) const;
  mlir::Attribute layout(mlir::MLIRContext *context) const { return layout(context, 0, parameters.size()); }
  SizeExpr shard() const;
  mlir::Type readElement() const { return rounded ? rounded : element; }
  /// What updates go on from: the parameters themselves, or masters beside what is read of them.
  std::string ownStateName() const { return stateName(rounded ? masterSuffix : ""); }
  std::string stateName(llvm::StringRef suffix = "") const;
};

/// Blocks by structure: what is first read between one self-attention's projections and the next one's, "block 0" and
/// so on; before is "embeddings", behind the last is "head"; without attention, a product with its bias and norms each.
/// Parameters for which `isApart` holds have units of their own, and so have those that stay whole: of fewer elements
/// than `keptBelow`, up to `keptTogether` elements.
llvm::SmallVector<Unit> findUnits(mlir::func::FuncOp model, const SizeAnalysis &analysis,
                                  llvm::function_ref<bool(llvm::StringRef name)> isApart, int64_t keptBelow = 0,
                                  int64_t keptTogether = 0);

/// Parameters of a unit that travel together: neighbours in its space.
struct Bucket {
  const Unit *unit = nullptr;
  size_t first = 0, last = 0; // [first, last) of the unit's parameters
  std::string name;           // the unit's, and which part it is

  llvm::ArrayRef<unsigned> parameters() const { return llvm::ArrayRef(unit->parameters).slice(first, last - first); }
};

/// A unit in buckets of at most so many elements, unless one tensor has more, from the end of its space on, where the
/// way back begins.
llvm::SmallVector<Bucket> cutUnit(const Unit &unit, int64_t most);

/// What ds.units says (dialects/ds/UnitAttrs.h).
mlir::ArrayAttr describeUnits(mlir::func::FuncOp model, const SizeAnalysis &analysis, llvm::ArrayRef<Unit> units);

} // namespace deepstride

#endif
