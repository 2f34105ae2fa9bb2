// Gives the weight of every scheduled ds.linear the layout that its micro-kernel streams, by extending the weight's
// recipe. Works on ds.linear ops whose weight operand is a ds.weight of rank 2. Which panels suit the machine is the
// schedule's choice; evaluating the recipe is left to packaging. Weights that are computed at run time, as those in
// states are, stay: their kernels pack a panel before they use it, and read a transposed weight as it lies.
//
//   ds.linear %x, %w                         ds.linear %x, %packed {panel = 48, columns = 384}
//   ds.linear %x, (ds.transpose %s [1, 0])   ds.linear %x, %s {transposed}
#include "passes/Report.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/Schedule.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace deepstride {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

/// Columns of a panel, and rows whose elements of one column lie side by side.
using Layout = std::pair<int64_t, int64_t>;

struct PackWeights : deepstride::impl::PackWeightsBase<PackWeights>, PassReport {

  void runOnOperation() override {
    count("weights packed", 0);
    count("transposes taken in", 0);
    SymbolTable symbols(getOperation());
    llvm::MapVector<std::pair<Attribute, Layout>, ds::RecipeOp> packed; // by the weight's recipe
    getOperation().walk([&](ds::LinearOp linear) {
      if (auto transpose = linear.getWeight().getDefiningOp<ds::TransposeOp>(); transpose && !linear.getPanel())
        return takeIn(linear, transpose);
      auto weight = linear.getWeight().getDefiningOp<ds::WeightOp>();
      auto schedule = ds::scheduleOf(linear);
      if (!weight || linear.getPanel() || !schedule)
        return;
      Type left = elementOf(linear.getInput()), right = elementOf(weight);
      bool isQuantized = linear.getScales() != nullptr;
      if (isQuantized ? !(left.isF32() || left.isBF16()) || linear.getTransposed()
                      : !isPackable(schedule.getKernel(), right))
        return;
      // What stands beside the codes is packed with them, or nothing is.
      SmallVector<OpOperand *> beside;
      for (auto range : {linear.getScalesMutable(), linear.getZeroPointsMutable()})
        for (OpOperand &operand : range)
          beside.push_back(&operand);
      if (!llvm::all_of(beside, [](OpOperand *operand) { return operand->get().getDefiningOp<ds::WeightOp>(); }))
        return;
      Layout layout{schedule.getColumns(), ds::interleaveOf(schedule.getKernel(), right)};
      auto replace = [&](OpOperand &operand, Layout layout) {
        auto weight = operand.get().getDefiningOp<ds::WeightOp>();
        ds::RecipeOp &target = packed[{weight.getRecipeAttr(), layout}];
        if (!target)
          target = pack(symbols, symbols.lookup<ds::RecipeOp>(weight.getRecipe()), layout);
        OpBuilder builder(linear);
        operand.set(ds::WeightOp::create(builder, weight.getLoc(), target.getYielded().getType(),
                                         FlatSymbolRefAttr::get(target)));
        if (weight->use_empty())
          weight.erase();
      };
      linear.setColumns(cast<RankedTensorType>(weight.getType()).getDimSize(1));
      if (auto input = cast<RankedTensorType>(linear.getInput().getType());
          layout.second > 1 && input.isDynamicDim(input.getRank() - 1))
        linear.setDepth(cast<RankedTensorType>(weight.getType()).getDimSize(0));
      linear.setPanel(layout.first);
      linear.setInterleave(layout.second);
      replace(linear.getWeightMutable(), layout);
      for (OpOperand *operand : beside)
        replace(*operand, {layout.first, 1});
      count("weights packed");
    });
    // Recipes that nothing names any more would still be written into the package.
    SymbolTableCollection tables;
    SymbolUserMap users(tables, getOperation()); // one walk over the module for all of them
    for (auto &[key, target] : packed) {
      auto recipe = symbols.lookup<ds::RecipeOp>(cast<FlatSymbolRefAttr>(key.first).getValue());
      if (recipe && users.useEmpty(recipe))
        symbols.erase(recipe);
    }
  }

  static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

  /// Whether the micro-kernel streams such a weight: integers narrower than their sum only in pairs or fours.
  static bool isPackable(ds::ProductKernel kernel, Type right) {
    if (ds::isSummedWide(right))
      return ds::interleaveOf(kernel, right) > 1;
    auto integer = dyn_cast<IntegerType>(right);
    return integer ? integer.getWidth() == 32 || integer.getWidth() == 64
                   : right.isF16() || right.isBF16() || right.isF32() || right.isF64();
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

  static ds::RecipeOp pack(SymbolTable &symbols, ds::RecipeOp recipe, Layout layout) {
    auto [panel, interleave] = layout;
    auto clone = cast<ds::RecipeOp>(recipe->clone());
    clone.setSymName((recipe.getSymName() + ".packed").str());
    auto yield = cast<ds::YieldOp>(clone.getBody().front().back());
    OpBuilder builder(yield);
    auto type = cast<RankedTensorType>(yield.getOperand(0).getType());
    int64_t panels = llvm::divideCeil(type.getDimSize(1), panel);
    int64_t groups = llvm::divideCeil(type.getDimSize(0), interleave);
    bool isHalfByte = type.getElementType().isInteger(4); // two lie in a byte
    auto packedType = RankedTensorType::get({panels, groups, panel * (isHalfByte ? interleave / 2 : interleave)},
                                            isHalfByte ? builder.getI8Type() : type.getElementType());
    Value value = ds::PackOp::create(builder, recipe.getLoc(), packedType, yield.getOperand(0),
                                     builder.getI64IntegerAttr(panel), builder.getI64IntegerAttr(interleave));
    yield->setOperand(0, value);
    symbols.insert(clone, recipe->getIterator());
    return clone;
  }
};

} // namespace
