// ds-quantize-filters: stores the filters of convolutions in 8 bits with a scale for each filter, or for each group of
// its elements. Works on every ds.conv of f32 whose filters are a ds.weight; the kernel of the convolution makes floats
// of them (ds-fuse-deep).
//
//   %y = ds.conv %x, %w        %f = ds.binary mul (ds.cast %codes to f32), %scales : tensor<filters x groups x K>
//                          =>  %y = ds.conv %x, (ds.reshape %f)
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/Calibration.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/HostQuantization.h"
#include "dialects/ds/RecipeEvaluator.h"
#include "dialects/ds/StridedWindow.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

namespace deepstride {
#define GEN_PASS_DEF_QUANTIZEFILTERS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// What became of filters: the recipes of their parts, or the reason why they are kept.
struct Filters {
  ds::RecipeOp codes, scales, zeroPoints;
  std::string reason;
};

struct QuantizeFilters : deepstride::impl::QuantizeFiltersBase<QuantizeFilters>, PassReport {
  using Base::Base;
  static constexpr int64_t leastGroup = 16; // elements beside a scale

  void runOnOperation() override {
    RecipeEvaluator evaluating; // passes can be copied, what it has read cannot
    evaluator = &evaluating;
    if (group < 0) {
      getOperation().emitError("ds-quantize-filters: group: expected at least 0, found ") << group.getValue();
      return signalPassFailure();
    }
    if (failed(verifyKeep(getOperation(), "ds-quantize-filters", keep)))
      return signalPassFailure();
    if (scheme != "symmetric" && scheme != "asymmetric") {
      getOperation().emitError("ds-quantize-filters: scheme: expected symmetric or asymmetric, found '")
          << scheme.getValue() << "'";
      return signalPassFailure();
    }
    for (StringRef what : {"filters quantized", "convolutions kept", "bytes before", "bytes after"})
      count(what, 0);
    RecipeBook book(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<ds::ConvOp> convolutions;
      function.walk([&](ds::ConvOp op) { convolutions.push_back(op); });
      auto analysis = SizeAnalysis::run(function);
      if (failed(analysis))
        return signalPassFailure();
      for (ds::ConvOp op : convolutions)
        if (failed(quantize(op, book, *analysis)))
          return signalPassFailure();
    }
    known.clear();
    eraseDeadOps(getOperation());
    eraseUnusedRecipes(getOperation());
  }

  LogicalResult quantize(ds::ConvOp op, RecipeBook &book, SizeAnalysis &analysis) {
    if (!typeOf(op.getInput()).getElementType().isF32())
      return success(); // integers are codes already
    auto keepAs = [&](const Twine &name, const Twine &reason) {
      op.emitRemark() << "filters" << name << " are kept: " << reason;
      count("convolutions kept");
      return success();
    };
    Value root = ds::throughReshapes(op.getWeight()); // behind axes that were left out
    auto weight = root.getDefiningOp<ds::WeightOp>();
    if (!weight || typeOf(weight).getDimSize(0) != typeOf(op.getWeight()).getDimSize(0))
      return keepAs("", root.getDefiningOp<ds::ConstantOp>()
                            ? "they have at most " + Twine(ds::ConstantOp::byteLimit) + " bytes"
                            : Twine("they are no constant of the package, which is known when the package is written"));
    auto recipe = book.recipeOf(weight);
    std::string name = (" '" + recipe.getSymName() + "'").str();
    if (isKept(keep, recipe.getSymName(), op))
      return keepAs(name, "'" + keep + "' matches their name or their convolution's");
    if (op.hasFewFilters())
      return keepAs(name, "a group has few of them, which walk over the image as they are");
    auto [found, isNew] = known.try_emplace(recipe);
    if (isNew && failed(make(op, recipe, book, found->second)))
      return failure();
    if (!found->second.codes)
      return keepAs(name, found->second.reason);
    replace(op, found->second, analysis);
    return success();
  }

  /// Codes less zero points times scales, [filter, group, element], as filters.
  static void replace(ds::ConvOp op, const Filters &filters, SizeAnalysis &analysis) {
    DsBuilder b(OpBuilder(op), analysis);
    b.setLocation(op.getLoc());
    auto stored = [&](ds::RecipeOp part) { return b.weight(FlatSymbolRefAttr::get(part), typeOf(part.getYielded())); };
    Value numbers = b.cast(stored(filters.codes), b.f32());
    if (filters.zeroPoints)
      numbers = b.sub(numbers, b.cast(stored(filters.zeroPoints), b.f32()));
    numbers = b.mul(numbers, stored(filters.scales));
    op.getWeightMutable().assign(b.reshape(numbers, b.sizes(op.getWeight())));
  }

  LogicalResult make(ds::ConvOp op, ds::RecipeOp recipe, RecipeBook &book, Filters &filters) {
    auto type = typeOf(recipe.getYielded());
    int64_t count = type.getDimSize(0), depth = type.getNumElements() / std::max<int64_t>(count, 1);
    // Groups are equal, so that they are an axis.
    int64_t part = group > 0 ? std::gcd(depth, group.getValue()) : depth;
    part = part < leastGroup ? depth : part;
    int64_t groups = depth / std::max<int64_t>(part, 1);
    QuantizationScheme how{8, groups > 1 ? part : 0, scheme == "asymmetric"};
    int64_t before = 4 * count * depth, after = count * depth + count * groups * (how.isAsymmetric ? 5 : 4);
    if (after >= before) {
      filters.reason = llvm::formatv("codes and scales take {0} bytes, their elements {1}", after, before);
      return success();
    }
    // A filter is a column of what ds.quantize_weight takes.
    auto columnsOf = [&](OpBuilder &b, Value value) -> Value {
      auto flat = type.clone({count, depth}), turned = type.clone({depth, count});
      Value rows =
          ds::ReshapeOp::create(b, recipe.getLoc(), flat, value, toAttribute(b.getContext(), SizeVector{count, depth}));
      return ds::TransposeOp::create(b, recipe.getLoc(), turned, rows, b.getDenseI64ArrayAttr({1, 0}));
    };
    auto columns = book.derive(recipe, "columns", [&](OpBuilder &b, const IRMapping &map) {
      return columnsOf(b, map.lookup(recipe.getYielded()));
    });
    auto elements = evaluator->evaluate(columns);
    if (failed(elements))
      return failure(); // which was diagnosed
    auto error = quantizationError(*elements, how);
    if (!error) {
      filters.reason = "they have elements that are not finite, or would not be as codes";
      return success();
    }
    auto derived = [&](ds::QuantizedPart kind, Type element, int64_t perGroup, const char *suffix) {
      return book.derive(recipe, suffix, [&](OpBuilder &b, const IRMapping &map) -> Value {
        Value made = ds::QuantizeWeightOp::create(
            b, recipe.getLoc(), RankedTensorType::get({groups * perGroup, count}, element), kind,
            columnsOf(b, map.lookup(recipe.getYielded())), Value(), how.bits, how.group, how.isAsymmetric);
        Value turned = ds::TransposeOp::create(b, recipe.getLoc(), typeOf(made).clone({count, groups * perGroup}), made,
                                               b.getDenseI64ArrayAttr({1, 0}));
        return ds::ReshapeOp::create(b, recipe.getLoc(), typeOf(made).clone({count, groups, perGroup}), turned,
                                     toAttribute(b.getContext(), SizeVector{count, groups, perGroup}));
      });
    };
    Builder types(op.getContext());
    filters.codes = derived(ds::QuantizedPart::codes, types.getI8Type(), part, "filters");
    filters.scales = derived(ds::QuantizedPart::scales, types.getF32Type(), 1, "filter_scales");
    if (how.isAsymmetric)
      filters.zeroPoints = derived(ds::QuantizedPart::zero_points, types.getI8Type(), 1, "filter_zero_points");
    std::string text = describe(*error);
    op.emitRemark() << llvm::formatv("filters '{0}' in 8 bits{1}: {2} bytes become {3}, {4}", recipe.getSymName(),
                                     groups > 1 ? " in groups of " + std::to_string(part) : std::string(), before,
                                     after, text)
                           .str();
    note("  " + recipe.getSymName().str() + ": " + text);
    PassReport::count("filters quantized");
    PassReport::count("bytes before", before);
    PassReport::count("bytes after", after);
    return success();
  }

  RecipeEvaluator *evaluator = nullptr;
  llvm::DenseMap<Operation *, Filters> known; // by recipe
};

} // namespace
