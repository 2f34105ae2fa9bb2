// Weights that a file stores as integers of at most 8 bits with scales and zero points: what recipes say of them.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_STOREDCODES_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_STOREDCODES_H

#include "passes/optimization/IntegerRanges.h"

namespace deepstride {

/// A recipe that yields layout((cast(integers) - zero points) * scales): all values are in its body.
struct StoredCodes {
  mlir::Value integers, zeroPoints, scales;    // zero points may be null; scales and they broadcast to the integers
  llvm::SmallVector<mlir::Operation *> layout; // from the product with the scales on to what is yielded
  int64_t group = 0;                           // elements along K that share a scale; 0: a whole column
  int64_t offset = 0;                          // what makes the integers signed codes
  unsigned bits = 8;                           // 8 or 4

  /// Whether codes, less the offset, have no zero points.
  bool isSymmetric() const;
};

class StoredCodeReader {
public:
  explicit StoredCodeReader(mlir::ModuleOp module) : ranges(module) {}

  /// The parts of any weight, groups aside; nothing where it is no product of codes and scales, and why not, where it
  /// nearly is.
  std::optional<StoredCodes> read(ds::RecipeOp recipe, std::string &reason);
  /// The same of a matrix [K, N] whose scales are one for each column or for each group along K.
  std::optional<StoredCodes> readMatrix(ds::RecipeOp recipe, std::string &reason);

private:
  bool areBytes(const StoredCodes &codes);

  IntegerRanges ranges;
};

} // namespace deepstride

#endif
