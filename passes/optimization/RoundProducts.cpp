// ds-round-products: products of f32 with weights that packages hold are computed on operands that are rounded to bf16,
// and summed in f32. The weight takes half the memory, and instructions that multiply pairs of bf16 do twice the work.
// Everything between products stays f32.
//
//   %y = ds.linear %x, %w        %b = ds.cast %x to bf16
//                            =>  %y = ds.linear %b, %rounded {wide} : (bf16, bf16) -> f32
#include "passes/Report.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/Passes.h"

namespace deepstride {
#define GEN_PASS_DEF_ROUNDPRODUCTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct RoundProducts : deepstride::impl::RoundProductsBase<RoundProducts>, PassReport {
  void runOnOperation() override {
    count("products rounded", 0);
    RecipeBook recipes(getOperation());
    llvm::DenseMap<Value, Value> rounded; // rows that several products read
    SmallVector<ds::LinearOp> products;
    getOperation().walk([&](ds::LinearOp op) { products.push_back(op); });
    std::string first;
    for (ds::LinearOp op : products) {
      std::string reason = round(op, recipes, rounded);
      if (reason.empty()) {
        count("products rounded");
        continue;
      }
      op.emitRemark() << "product not rounded: " << reason;
      if (first.empty())
        first = reason;
    }
    eraseUnusedRecipes(getOperation());
    if (rounded.empty()) {
      getOperation().emitError("ds-round-products: no product was rounded: ")
          << (first.empty() ? "there is no product with a weight" : first);
      signalPassFailure();
    }
  }

  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

  /// Why the product stays as it is; empty where it was replaced.
  static std::string round(ds::LinearOp op, RecipeBook &recipes, llvm::DenseMap<Value, Value> &rounded) {
    Type bf16 = BFloat16Type::get(op.getContext());
    if (op.getScales() || op.getPanel())
      return "its weight is quantized or packed";
    if (!typeOf(op.getInput()).getElementType().isF32() || !typeOf(op.getWeight()).getElementType().isF32())
      return "its operands are not f32";
    if (!isa_and_present<ds::WeightOp, ds::ConstantOp>(op.getWeight().getDefiningOp()))
      return "its weight is computed while the program runs";
    OpBuilder builder(op);
    auto cast = [&](Value value) {
      return ds::CastOp::create(builder, op.getLoc(), typeOf(value).clone(bf16), value, TypeAttr::get(bf16));
    };
    auto narrow = cast(op.getWeight());
    Value weight = recipes.store(builder, narrow);
    if (!weight)
      return "the recipe of its weight has too many ops";
    narrow->erase();
    auto old = op.getWeight().getDefiningOp<ds::WeightOp>();
    op.getWeightMutable().assign(weight);
    if (old && old->use_empty())
      old.erase();
    Value &input = rounded[op.getInput()];
    if (!input) { // right behind the rows: every product that reads them comes later
      builder.setInsertionPointAfterValue(op.getInput());
      input = cast(op.getInput());
    }
    op.getInputMutable().assign(input);
    op.setWide(true);
    return "";
  }
};

} // namespace
