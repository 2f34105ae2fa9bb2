// Constants that are computed from constants: what packaging, or the compiler itself for small ones, evaluates once.
#ifndef DEEPSTRIDE_PASSES_GRAPH_RECIPES_H
#define DEEPSTRIDE_PASSES_GRAPH_RECIPES_H

#include "dialects/ds/DsDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace deepstride {
class DsBuilder;

/// Whether a recipe may hold the op: packaging evaluates it, all sizes are static, and it does not enlarge what is
/// stored.
bool isStorable(mlir::Operation *op);

/// Whether the op is a constant or storable, as are all ops behind it.
bool areStorable(mlir::Operation *root);

/// Removes recipes that nothing refers to.
void eraseUnusedRecipes(mlir::ModuleOp module);

class RecipeBook {
public:
  explicit RecipeBook(mlir::ModuleOp module) : symbols(module) {}

  /// A ds.constant or ds.weight, created at the builder, of the value of `root`: an op that is storable, as are all ops
  /// behind it up to constants and weights. Null where the recipe would grow out of hand.
  mlir::Value store(mlir::OpBuilder &builder, mlir::Operation *root);
  /// The same for a value of the builder's that may be a constant already; null, too, where what is behind it is no
  /// constant that packaging can compute.
  mlir::Value store(DsBuilder &builder, mlir::Value value);

  ds::RecipeOp recipeOf(ds::WeightOp weight) { return symbols.lookup<ds::RecipeOp>(weight.getRecipe()); }
  /// A recipe beside another one, called like it with a suffix, of what `build` makes of the values in its body.
  ds::RecipeOp derive(ds::RecipeOp recipe, const llvm::Twine &suffix,
                      llvm::function_ref<mlir::Value(mlir::OpBuilder &, const mlir::IRMapping &)> build);

private:
  mlir::SymbolTable symbols;
};

} // namespace deepstride

#endif
