// ds-round-filters: convolutions of f32 with filters that packages hold are computed on images and filters that are
// rounded to bf16 or f16, and summed in f32. Filters take half the memory, and instructions that multiply pairs of
// bf16 do more work. Everything between convolutions stays f32.
//
//   %y = ds.conv %x, %w        %b = ds.cast %x to bf16
//                          =>  %y = ds.conv %b, %rounded {wide} : (bf16, bf16) -> f32
//
// Where no instruction multiplies pairs, the same numbers are multiplied in f32:
//
//                          =>  %y = ds.conv (ds.cast %b to f32), (ds.cast %rounded to f32)
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/HalfRange.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/ProductCosts.h"

#include "dialects/ds/StridedWindow.h"

namespace deepstride {
#define GEN_PASS_DEF_ROUNDFILTERS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

struct RoundFilters : deepstride::impl::RoundFiltersBase<RoundFilters>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    count("convolutions rounded", 0);
    if (type != "bf16" && type != "f16") {
      getOperation().emitError("ds-round-filters: type: expected bf16 or f16, found '") << type << "'";
      return signalPassFailure();
    }
    std::string error;
    auto parsed = Machine::parse(machine, error);
    if (machine != "none" && !parsed) {
      getOperation().emitError("ds-round-filters: ") << error;
      return signalPassFailure();
    }
    isHalf = type == "f16";
    isWide = !isHalf && (!parsed || multipliesPairs(*parsed));
    images.clear();
    RecipeBook recipes(getOperation());
    HalfRange range(recipes);
    SmallVector<ds::ConvOp> convolutions;
    getOperation().walk([&](ds::ConvOp op) { convolutions.push_back(op); });
    for (ds::ConvOp op : convolutions) {
      std::string reason = round(op, recipes, range);
      if (reason.empty())
        count("convolutions rounded");
      else
        op.emitRemark() << "convolution not rounded: " << reason;
    }
    if (range.isBroken)
      return signalPassFailure();
    eraseDeadOps(getOperation());
    eraseUnusedRecipes(getOperation());
  }

  /// Why the convolution stays as it is; empty where it was rounded.
  std::string round(ds::ConvOp op, RecipeBook &recipes, HalfRange &range) {
    if (!typeOf(op.getInput()).getElementType().isF32())
      return "its operands are not f32";
    if (op.hasFewFilters())
      return "a group has one filter or two, too few to share what is gathered for them";
    Value root = ds::throughReshapes(op.getWeight()); // behind axes that were left out
    bool isStored = isa_and_present<ds::WeightOp, ds::ConstantOp>(root.getDefiningOp());
    auto reshape = op.getWeight().getDefiningOp<ds::ReshapeOp>(); // of codes times their scales
    if (!isStored && !(reshape && reshape->hasOneUse() && areMadeOfConstants(reshape.getInput())))
      return "its filters are computed while the program runs";
    if (!isStored && isHalf)
      return "its filters are codes, whose scales may take them beyond f16";
    if (std::string reason = isHalf ? range.refuse(root) : ""; !reason.empty())
      return reason;
    OpBuilder builder(op);
    Type f32 = builder.getF32Type(), narrow = isHalf ? Type(builder.getF16Type()) : builder.getBF16Type();
    auto cast = [&](Value value, Type element) {
      return ds::CastOp::create(builder, op.getLoc(), typeOf(value).clone(element), value, TypeAttr::get(element));
    };
    auto narrowed = [&](Value value) -> Value { return isWide ? cast(value, narrow) : cast(cast(value, narrow), f32); };
    if (isStored) {
      auto rounded = cast(op.getWeight(), narrow);
      Value filters = recipes.store(builder, rounded);
      rounded->erase();
      if (!filters)
        return "the recipe of its filters has too many ops";
      op.getWeightMutable().assign(isWide ? filters : cast(filters, f32));
    } else {
      builder.setInsertionPoint(reshape);
      reshape.getInputMutable().assign(narrowed(reshape.getInput()));
      reshape.getResult().setType(typeOf(reshape).clone(typeOf(reshape.getInput()).getElementType()));
      builder.setInsertionPoint(op);
    }
    Value &image = images[op.getInput()];
    if (!image) { // right behind it: every convolution that reads it comes later
      builder.setInsertionPointAfterValue(op.getInput());
      image = narrowed(op.getInput());
    }
    op.getInputMutable().assign(image);
    op.setWide(isWide);
    return "";
  }

  /// Whether a kernel can make the filters of constants, one by one (ds-quantize-filters).
  static bool areMadeOfConstants(Value value) {
    Operation *op = value.getDefiningOp();
    if (isa_and_present<ds::WeightOp, ds::ConstantOp>(op))
      return true;
    auto element = dyn_cast_or_null<ds::PerElement>(op);
    return element && element.isPointwise() && llvm::all_of(op->getOperands(), areMadeOfConstants);
  }

  bool isHalf = false, isWide = false;
  llvm::DenseMap<Value, Value> images; // that several convolutions read
};

} // namespace
