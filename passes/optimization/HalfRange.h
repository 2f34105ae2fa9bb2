// Which weights f16 cannot hold, so that what rounds them keeps them in f32.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_HALFRANGE_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_HALFRANGE_H

#include "dialects/ds/RecipeEvaluator.h"
#include "passes/graph/Recipes.h"

namespace deepstride {

/// Looks at each weight once.
class HalfRange {
public:
  explicit HalfRange(RecipeBook &recipes) : recipes(recipes) {}

  /// Why the ds.weight or ds.constant stays as it is; empty where no finite element becomes infinite.
  std::string refuse(mlir::Value value);

  /// Whether a weight could not be read, which was diagnosed.
  bool isBroken = false;

private:
  std::string refuse(ds::RecipeOp recipe);

  RecipeBook &recipes;
  RecipeEvaluator evaluator;
  llvm::DenseMap<mlir::Attribute, std::string> reasons;
};

} // namespace deepstride

#endif
