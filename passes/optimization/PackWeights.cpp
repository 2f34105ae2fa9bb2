// Gives the weight of every ds.linear the layout that its micro-kernel streams, by extending the weight's recipe.
// Works on ds.linear ops whose weight operand is a ds.weight of rank 2 and f32. Which panel width suits the target is
// the pipeline's choice; evaluating the recipe is left to packaging. Weights that are computed at run time, as those in
// states are, stay: their kernels pack a panel before they use it, and read a transposed weight as it lies.
//
//   ds.linear %x, %w                         ds.linear %x, %packed {panel = 48, columns = 384}
//   ds.linear %x, (ds.transpose %s [1, 0])   ds.linear %x, %s {transposed}
#include "passes/Report.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsDialect.h"
#include "mlir/IR/IRMapping.h"

namespace deepstride {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct PackWeights : deepstride::impl::PackWeightsBase<PackWeights>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    count("weights packed", 0);
    count("transposes taken in", 0);
    if (panel <= 0 || panel > 1024) {
      getOperation().emitError("panel must be between 1 and 1024, found ") << panel.getValue();
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    llvm::DenseMap<Attribute, ds::RecipeOp> packed;
    getOperation().walk([&](ds::LinearOp linear) {
      if (auto transpose = linear.getWeight().getDefiningOp<ds::TransposeOp>(); transpose && !linear.getPanel())
        return takeIn(linear, transpose);
      auto weight = linear.getWeight().getDefiningOp<ds::WeightOp>();
      // The micro-kernel is one of f32; other products take their weights row by row.
      if (!weight || linear.getPanel() || !cast<RankedTensorType>(weight.getType()).getElementType().isF32())
        return;
      ds::RecipeOp &target = packed[weight.getRecipeAttr()];
      if (!target)
        target = pack(symbols, symbols.lookup<ds::RecipeOp>(weight.getRecipe()));
      OpBuilder builder(linear);
      auto operand =
          ds::WeightOp::create(builder, weight.getLoc(), target.getYielded().getType(), FlatSymbolRefAttr::get(target));
      linear.setColumns(cast<RankedTensorType>(weight.getType()).getDimSize(1));
      linear.setPanel(panel);
      linear.getWeightMutable().assign(operand);
      if (weight->use_empty())
        weight.erase();
      count("weights packed");
    });
    // Recipes that nothing names any more would still be written into the package.
    SymbolTableCollection tables;
    SymbolUserMap users(tables, getOperation()); // one walk over the module for all of them
    for (auto &[source, target] : packed) {
      auto recipe = symbols.lookup<ds::RecipeOp>(cast<FlatSymbolRefAttr>(source).getValue());
      if (users.useEmpty(recipe))
        symbols.erase(recipe);
    }
  }

  void takeIn(ds::LinearOp linear, ds::TransposeOp transpose) {
    if (transpose.getPermutation() != ArrayRef<int64_t>{1, 0})
      return;
    linear.getWeightMutable().assign(transpose.getInput());
    linear.setTransposed(!linear.getTransposed());
    if (transpose->use_empty())
      transpose.erase();
    count("transposes taken in");
  }

  ds::RecipeOp pack(SymbolTable &symbols, ds::RecipeOp recipe) {
    auto clone = cast<ds::RecipeOp>(recipe->clone());
    clone.setSymName((recipe.getSymName() + ".packed").str());
    auto yield = cast<ds::YieldOp>(clone.getBody().front().back());
    OpBuilder builder(yield);
    auto type = cast<RankedTensorType>(yield.getOperand(0).getType());
    auto packedType = RankedTensorType::get({(type.getDimSize(1) + panel - 1) / panel, type.getDimSize(0), panel},
                                            type.getElementType());
    Value value =
        ds::PackOp::create(builder, recipe.getLoc(), packedType, yield.getOperand(0), builder.getI64IntegerAttr(panel));
    yield->setOperand(0, value);
    symbols.insert(clone, recipe->getIterator());
    return clone;
  }
};

} // namespace
