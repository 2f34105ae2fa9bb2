// ds-recover-codes: weights that a file stores as codes of at most 8 bits, with scales and zero points for columns or
// for groups along K, stay codes, where the importer has written what they stand for:
//
//   %w = layout((cast(codes) - zero points) * scales)        %y = ds.linear %x, %codes scales %s zero_points %z
//   %y = ds.linear %x, %w                               =>        {group = 32}
//
// Layouts are reshapes, transposes and a cut at the end of an axis. Weights of other forms stay floats.
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/StoredCodes.h"

#include "dialects/ds/HostQuantization.h"
#include "dialects/ds/RecipeEvaluator.h"

namespace deepstride {
#define GEN_PASS_DEF_RECOVERCODES
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Writes the recipes of a weight's parts.
class WeightWriter {
public:
  WeightWriter(RecipeBook &book, ds::RecipeOp recipe, const StoredCodes &codes)
      : book(book), recipe(recipe), codes(codes) {}

  ds::RecipeOp writeCodes() {
    return book.derive(recipe, "codes", [&](OpBuilder &b, const IRMapping &map) {
      Value value = map.lookup(codes.integers);
      if (codes.offset) {
        value = cast(b, value, b.getI16Type());
        value = binary(b, ds::BinaryKind::sub, value, scalar(b, b.getI16IntegerAttr(codes.offset)));
      }
      value = cast(b, value, b.getIntegerType(codes.bits));
      return arranged(b, value, typeOf(value).getShape());
    });
  }
  ds::RecipeOp writeScales() {
    return book.derive(recipe, "scales",
                       [&](OpBuilder &b, const IRMapping &map) { return perGroup(b, map.lookup(codes.scales)); });
  }
  /// Null where all of them are 0.
  ds::RecipeOp writeZeroPoints() {
    if (codes.isSymmetric())
      return {};
    return book.derive(recipe, "zero_points", [&](OpBuilder &b, const IRMapping &map) {
      auto f32 = b.getF32Type();
      Value value = codes.zeroPoints ? map.lookup(codes.zeroPoints) : scalar(b, b.getF32FloatAttr(0));
      value = binary(b, ds::BinaryKind::sub, value, scalar(b, FloatAttr::get(f32, static_cast<double>(codes.offset))));
      return perGroup(b, cast(b, value, b.getI8Type()));
    });
  }

private:
  Value scalar(OpBuilder &b, TypedAttr number) {
    auto type = RankedTensorType::get({}, number.getType());
    return ds::ConstantOp::create(b, recipe.getLoc(), DenseElementsAttr::get(type, Attribute(number)));
  }
  Value cast(OpBuilder &b, Value value, Type element) {
    if (typeOf(value).getElementType() == element)
      return value;
    return ds::CastOp::create(b, recipe.getLoc(), typeOf(value).clone(element), value, TypeAttr::get(element));
  }
  Value binary(OpBuilder &b, ds::BinaryKind kind, Value x, Value y) {
    return ds::BinaryOp::create(b, recipe.getLoc(), x.getType(), kind, x, y);
  }
  ArrayAttr list(ArrayRef<int64_t> sizes) {
    SizeVector numbers(sizes.begin(), sizes.end());
    return toAttribute(recipe.getContext(), numbers);
  }
  Value reshape(OpBuilder &b, Value value, ArrayRef<int64_t> sizes) {
    if (typeOf(value).getShape() == sizes)
      return value;
    return ds::ReshapeOp::create(b, recipe.getLoc(), typeOf(value).clone(sizes), value, list(sizes));
  }

  /// The layout of the weight on a tensor of the integers' shape, or, for groups, on one whose axes that share a scale
  /// have size 1: then every size is what is left of it.
  Value arranged(OpBuilder &b, Value value, ArrayRef<int64_t> from) {
    SmallVector<int64_t> shape(from);
    for (Operation *op : codes.layout) {
      auto result = typeOf(op->getResult(0));
      if (auto transpose = dyn_cast<ds::TransposeOp>(op)) {
        SmallVector<int64_t> moved;
        for (int64_t axis : transpose.getPermutation())
          moved.push_back(shape[axis]);
        shape = moved;
        value =
            ds::TransposeOp::create(b, recipe.getLoc(), typeOf(value).clone(shape), value, transpose.getPermutation());
      } else if (auto slice = dyn_cast<ds::SliceOp>(op)) {
        shape = SmallVector<int64_t>(result.getShape());
        value = ds::SliceOp::create(b, recipe.getLoc(), typeOf(value).clone(shape), value, slice.getStarts(),
                                    list(shape), slice.getSteps());
      } else {
        shape = SmallVector<int64_t>(result.getShape());
        value = reshape(b, value, shape);
      }
    }
    return value;
  }

  /// [G, N] of what broadcasts to the integers: as large as the weight along N, one for each group along K.
  Value perGroup(OpBuilder &b, Value value) {
    auto type = typeOf(codes.integers);
    SmallVector<int64_t> own(type.getRank() - typeOf(value).getRank(), 1), whole(type.getShape());
    llvm::append_range(own, typeOf(value).getShape());
    value = reshape(b, value, own);
    value = ds::BroadcastOp::create(b, recipe.getLoc(), typeOf(value).clone(whole), value, list(whole));
    value = arranged(b, value, whole);
    auto weight = typeOf(value);
    int64_t step = codes.group ? codes.group : weight.getDimSize(0);
    int64_t groups = llvm::divideCeil(weight.getDimSize(0), step);
    SmallVector<int64_t> sizes = {groups, weight.getDimSize(1)};
    return ds::SliceOp::create(b, recipe.getLoc(), weight.clone(sizes), value, list({0, 0}), list(sizes),
                               ArrayRef<int64_t>{step, 1});
  }

  RecipeBook &book;
  ds::RecipeOp recipe;
  const StoredCodes &codes;
};

struct RecoverCodes : deepstride::impl::RecoverCodesBase<RecoverCodes>, PassReport {
  void runOnOperation() override {
    RecipeEvaluator evaluating; // passes can be copied, what it has read cannot
    evaluator = &evaluating;
    count("weights recovered", 0);
    StoredCodeReader reader(getOperation());
    RecipeBook book(getOperation());
    SmallVector<ds::LinearOp> products;
    getOperation().walk([&](ds::LinearOp op) { products.push_back(op); });
    struct Recovered {
      ds::RecipeOp codes, scales, zeroPoints;
      int64_t group = 0;
      std::string reason; // why there are none
    };
    llvm::DenseMap<Attribute, Recovered> known;
    for (ds::LinearOp op : products) {
      auto weight = op.getWeight().getDefiningOp<ds::WeightOp>();
      if (!weight || op.getScales() || op.getPanel() || op.getTransposed() ||
          !typeOf(weight).getElementType().isF32() || !typeOf(op.getInput()).getElementType().isF32())
        continue;
      auto [found, isNew] = known.try_emplace(weight.getRecipeAttr());
      Recovered &parts = found->second;
      auto recipe = book.recipeOf(weight);
      if (auto codes = isNew ? reader.readMatrix(recipe, parts.reason) : std::nullopt) {
        auto wrong = reasonAgainstScales(book, recipe, *codes);
        if (failed(wrong))
          return signalPassFailure();
        WeightWriter writer(book, recipe, *codes);
        if (wrong->empty()) {
          parts = {writer.writeCodes(), writer.writeScales(), writer.writeZeroPoints(), codes->group, ""};
          count("weights recovered");
        }
        parts.reason = *wrong;
      }
      if (!parts.reason.empty())
        op.emitRemark() << "weight '" << weight.getRecipe() << "' stays floats: " << parts.reason;
      if (!parts.codes)
        continue;
      OpBuilder builder(op);
      auto stored = [&](ds::RecipeOp recipe) -> Value {
        return ds::WeightOp::create(builder, weight.getLoc(), recipe.getYielded().getType(),
                                    FlatSymbolRefAttr::get(recipe));
      };
      op.getWeightMutable().assign(stored(parts.codes));
      op.getScalesMutable().assign(stored(parts.scales));
      if (parts.zeroPoints)
        op.getZeroPointsMutable().assign(stored(parts.zeroPoints));
      if (parts.group)
        op.setGroup(parts.group);
      if (weight.use_empty())
        weight.erase();
    }
    eraseUnusedRecipes(getOperation());
  }

  /// What is wrong with the scales of a weight, for all that its codes can be recovered; empty: nothing.
  FailureOr<std::string> reasonAgainstScales(RecipeBook &book, ds::RecipeOp recipe, const StoredCodes &codes) {
    int64_t depth = typeOf(recipe.getYielded()).getDimSize(0);
    auto floats = [](const HostTensor &numbers) {
      return ArrayRef(reinterpret_cast<const float *>(numbers.data), static_cast<size_t>(numbers.count()));
    };
    // As the file has them they are few; in the columns that they become, as many as groups.
    Value scales = codes.scales;
    while (isa_and_present<ds::ReshapeOp, ds::TransposeOp, ds::BroadcastOp>(scales.getDefiningOp()))
      scales = scales.getDefiningOp()->getOperand(0);
    auto stored = evaluator->evaluate(
        book.derive(recipe, "stored_scales", [&](OpBuilder &, const IRMapping &map) { return map.lookup(scales); }));
    if (failed(stored))
      return failure(); // which was diagnosed
    if (!mayScalesBeApart(floats(*stored), depth, codes.bits))
      return std::string();
    auto all = evaluator->evaluate(WeightWriter(book, recipe, codes).writeScales());
    if (failed(all))
      return failure();
    bool areApart = areScalesApart(floats(*all), all->shape[1], depth, codes.bits);
    return std::string(areApart ? "the scales of its groups are not finite, or too far apart to be summed in f32" : "");
  }

  RecipeEvaluator *evaluator = nullptr;
};

} // namespace
