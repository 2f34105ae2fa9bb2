// What calibration leaves in a module for the passes about weights, and which weights they are about.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_CALIBRATION_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_CALIBRATION_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

/// On a module, for ds-quantize-weights: a dictionary from the recipes of weights to recipes of triangles.
inline constexpr llvm::StringLiteral trianglesAttr = "ds.triangles";
/// On a module, by ds-observe-products: a dictionary from the recipes of weights to lists of states; the sum of those
/// is the sum of x x^T over the rows x that the weight is multiplied by.
inline constexpr llvm::StringLiteral observedAttr = "ds.observed";
/// On a module, by ds-observe-products: the number of the first weight that was left out.
inline constexpr llvm::StringLiteral unobservedAttr = "ds.unobserved";

/// Diagnoses a `keep` of a pass that is no regular expression, or none that can be matched in bounded memory.
llvm::LogicalResult verifyKeep(mlir::ModuleOp module, llvm::StringRef pass, llvm::StringRef keep);
/// Whether `keep`, a regular expression or nothing, matches the weight of a recipe or the node that an op came from.
bool isKept(const std::string &keep, llvm::StringRef recipe, mlir::Operation *op);

/// The weight of a product that can be stored in fewer bits, or why it cannot.
struct ProductWeight {
  ds::WeightOp weight; // null: not a constant of the package
  ds::CastOp cast;     // to f64, between the weight and the product
  std::string reason;  // empty: it can be
};
/// `keep` as in isKept.
ProductWeight weightOf(ds::LinearOp op, const std::string &keep);

} // namespace deepstride

#endif
