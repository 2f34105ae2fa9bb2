// ds-quantize-weights: stores the weights of products in 8 or 4 bits. Works on every ds.linear whose weight is a
// ds.weight of f32, or its cast to f64: the weight's recipe goes on to codes, scales and, where asked for, zero points,
// which packaging computes one weight at a time. Other uses of a weight, such as the rows of a tied embedding, keep
// what is stored for them. Layouts are left to ds-pack-weights.
// With `mixed` weights that results depend on most are stored in finer steps (SensitiveWeights.h).
//
//   %y = ds.linear %x, %w           %y = ds.linear %x, %codes scales %scales {group = 32}
#include "passes/Report.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/Calibration.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/SensitiveWeights.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostQuantization.h"
#include "dialects/ds/RecipeEvaluator.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"

namespace deepstride {
#define GEN_PASS_DEF_QUANTIZEWEIGHTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

/// What became of a weight: the recipes of its parts, or the reason why it is kept.
struct Quantized {
  ds::RecipeOp codes, scales, zeroPoints;
  QuantizationError error;
  int64_t group = 0;
  std::string reason;
};

struct Options {
  QuantizationScheme how;
  std::string keep;
  bool isMixed = false;
};

class WeightQuantizer {
public:
  WeightQuantizer(ModuleOp module, Options options, PassReport &report)
      : module(module), options(std::move(options)), report(report), symbols(module),
        triangles(module->getAttrOfType<DictionaryAttr>(trianglesAttr)) {}

  LogicalResult run() {
    warnOfNoName();
    if (options.isMixed)
      sensitive = sensitiveWeights(module, options.keep, /*keepsType=*/options.how.bits == 8);
    SmallVector<ds::LinearOp> products;
    module.walk([&](ds::LinearOp op) { products.push_back(op); });
    for (ds::LinearOp op : products)
      quantize(op);
    if (isBroken)
      return failure();
    module->removeAttr(trianglesAttr);
    eraseUnusedRecipes(module);
    noteErrors();
    if (!errors.empty() || hasTables())
      return success();
    bool hasFilters = module.walk([](ds::ConvOp) { return WalkResult::interrupt(); }).wasInterrupted();
    StringRef none = hasFilters ? "no product has a weight, and filters are kept for the reasons in the remarks"
                                : "no product has a weight";
    return module.emitError("ds-quantize-weights: no weight was quantized: ")
           << (firstReason.empty() ? none : StringRef(firstReason));
  }

private:
  /// Of an expression that keeps nothing, as of a name that was mistyped.
  void warnOfNoName() {
    auto matches = [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value value) {
        auto cast = value.getDefiningOp<ds::CastOp>(); // of --reference=f64
        auto weight = (cast ? cast.getInput() : value).getDefiningOp<ds::WeightOp>();
        return weight && isKept(options.keep, weight.getRecipe(), op);
      });
    };
    bool isMatched =
        module.walk([&](Operation *op) { return matches(op) ? WalkResult::interrupt() : WalkResult::advance(); })
            .wasInterrupted();
    if (!options.keep.empty() && !isMatched)
      module.emitWarning("ds-quantize-weights: keep: '")
          << options.keep << "' matches no name of a weight, nor of what reads one";
  }

  /// Whether ds-quantize-tables found something to do: then the program is quantized without products, too.
  bool hasTables() {
    return module.walk([](ds::QuantizeWeightOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }

  /// Says why a weight stays what it is.
  void keepAs(ds::LinearOp op, StringRef name, const Twine &reason) {
    std::string text = ((name.empty() ? "the weight" : "weight '" + name + "'") + " is kept: " + reason).str();
    op.emitRemark() << text;
    report.count("products kept");
    if (firstReason.empty())
      firstReason = text;
  }

  void quantize(ds::LinearOp op) {
    ProductWeight found = weightOf(op, options.keep);
    ds::WeightOp weight = found.weight;
    ds::CastOp cast = found.cast;
    StringRef name = weight ? weight.getRecipe() : StringRef();
    if (!found.reason.empty())
      return keepAs(op, name, found.reason);
    auto type = mlir::cast<RankedTensorType>(weight.getType());
    Type element = mlir::cast<RankedTensorType>(op.getInput().getType()).getElementType();
    Quantized &parts = known[weight.getRecipeAttr()];
    if (!parts.codes && parts.reason.empty())
      make(op, weight, type, parts);
    if (!parts.codes)
      return keepAs(op, name, parts.reason);

    OpBuilder builder(op);
    auto stored = [&](ds::RecipeOp recipe) -> Value {
      return ds::WeightOp::create(builder, weight.getLoc(), recipe.getYielded().getType(),
                                  FlatSymbolRefAttr::get(recipe));
    };
    Value scales = stored(parts.scales);
    if (cast) {
      auto wide = mlir::cast<RankedTensorType>(scales.getType()).clone(element);
      scales = ds::CastOp::create(builder, weight.getLoc(), wide, scales, TypeAttr::get(element));
    }
    op.getWeightMutable().assign(stored(parts.codes));
    op.getScalesMutable().assign(scales);
    if (parts.zeroPoints)
      op.getZeroPointsMutable().assign(stored(parts.zeroPoints));
    if (parts.group)
      op.setGroup(parts.group);
    for (Operation *unused : {cast ? cast.getOperation() : nullptr, weight.getOperation()})
      if (unused && unused->use_empty())
        unused->erase();
    report.count("products with codes");
  }

  /// The bytes of codes, scales and zero points of a weight.
  static int64_t bytesOf(RankedTensorType type, const QuantizationScheme &how) {
    int64_t depth = type.getDimSize(0), columns = type.getDimSize(1);
    int64_t groups = how.group ? llvm::divideCeil(depth, how.group) : 1;
    return llvm::divideCeil(depth * how.bits, 8) * columns + groups * columns * (how.isAsymmetric ? 5 : 4);
  }

  void make(ds::LinearOp op, ds::WeightOp weight, RankedTensorType type, Quantized &parts) {
    int64_t depth = type.getDimSize(0), columns = type.getDimSize(1);
    auto perColumn = [&](int64_t group) { return group < depth ? group : 0; }; // a group of all rows is a column
    QuantizationScheme how{options.how.bits, perColumn(options.how.group), options.how.isAsymmetric};
    int64_t before = depth * columns * 4;
    if (int64_t after = bytesOf(type, how); after >= before) {
      parts.reason = llvm::formatv("codes and scales take {0} bytes, its elements {1}", after, before);
      return;
    }
    auto recipe = symbols.lookup<ds::RecipeOp>(weight.getRecipe());
    auto elements = evaluator.evaluate(recipe);
    if (failed(elements)) { // which was diagnosed
      parts.reason = "its elements cannot be read";
      isBroken = true;
      return;
    }
    ds::RecipeOp against = triangleOf(recipe, depth);
    FailureOr<HostTensor> triangle = failure();
    if (against && failed(triangle = evaluator.evaluate(against))) {
      parts.reason = "its triangle cannot be read";
      isBroken = true;
      return;
    }
    StringRef finer;
    if (options.isMixed) {
      QuantizationScheme fine{8, perColumn(how.group ? how.group : finestGroup), how.isAsymmetric};
      if (bytesOf(type, fine) < before)
        finer = reasonForFiner(recipe, *elements, how, fine);
      if (!finer.empty())
        how = fine;
    }
    auto error = quantizationError(*elements, how, against ? &*triangle : nullptr);
    if (!error) {
      parts.reason = "it has elements that are not finite, or would not be as codes";
      return;
    }
    parts.error = *error;
    parts.group = how.group;
    int64_t groups = how.group ? llvm::divideCeil(depth, how.group) : 1, after = bytesOf(type, how);
    auto integer = [&](int64_t width) { return IntegerType::get(module.getContext(), static_cast<unsigned>(width)); };
    parts.codes = extend(recipe, ds::QuantizedPart::codes, type.clone(integer(how.bits)), how,
                         "int" + std::to_string(how.bits), against);
    auto perGroup = RankedTensorType::get({groups, columns}, type.getElementType());
    parts.scales = extend(recipe, ds::QuantizedPart::scales, perGroup, how, "scales");
    if (how.isAsymmetric)
      parts.zeroPoints = extend(recipe, ds::QuantizedPart::zero_points, perGroup.clone(integer(8)), how, "zero_points");
    errors.push_back({recipe.getSymName().str(), *error});
    std::string ways = llvm::formatv("{0} bits", how.bits);
    if (!finer.empty())
      ways += llvm::formatv(", in groups of {0}, being {1}", how.group ? how.group : depth, finer);
    op.emitRemark() << llvm::formatv("weight '{0}' in {1}: {2} bytes become {3}, {4}", recipe.getSymName(), ways,
                                     before, after, describe(*error))
                           .str();
    report.count("weights quantized");
    if (options.isMixed)
      report.count("in finer steps", finer.empty() ? 0 : 1);
    if (triangles)
      report.count(against ? "calibrated" : "to nearest");
    if (triangles && !against)
      op.emitRemark() << "weight '" << recipe.getSymName()
                      << "' is rounded to nearest: calibration does not see products inside branches and loops";
    report.count("bytes before", before);
    report.count("bytes after", after);
  }

  /// Why a weight gets the finer of two ways to store it; empty: it does not.
  StringRef reasonForFiner(ds::RecipeOp recipe, const HostTensor &elements, const QuantizationScheme &how,
                           const QuantizationScheme &fine) {
    if (how.bits == fine.bits && how.group == fine.group)
      return "";
    auto error = quantizationError(elements, how);
    // What lies on the coarse grid already loses nothing but what rounding of its scale does.
    constexpr double nothing = 1e-6, outlying = 1.8;
    if (!error || error->relative < nothing)
      return "";
    auto found = sensitive.find(FlatSymbolRefAttr::get(recipe));
    if (found != sensitive.end())
      return found->second;
    if (how.bits < fine.bits)
      return "";
    auto less = quantizationError(elements, fine);
    return less && error->relative > outlying * less->relative ? "a weight with outliers" : "";
  }

  /// What the codes of a weight with so many rows are rounded against; null: to nearest.
  ds::RecipeOp triangleOf(ds::RecipeOp recipe, int64_t depth) {
    auto name = triangles ? triangles.getAs<FlatSymbolRefAttr>(recipe.getSymName()) : FlatSymbolRefAttr();
    auto triangle = name ? symbols.lookup<ds::RecipeOp>(name.getValue()) : ds::RecipeOp();
    auto type = RankedTensorType::get({depth, depth}, Float32Type::get(module.getContext()));
    return triangle && triangle.getYielded().getType() == type ? triangle : ds::RecipeOp();
  }

  ds::RecipeOp extend(ds::RecipeOp recipe, ds::QuantizedPart part, RankedTensorType type, const QuantizationScheme &how,
                      const std::string &suffix, ds::RecipeOp against = {}) {
    auto clone = cast<ds::RecipeOp>(recipe->clone());
    clone.setSymName((recipe.getSymName() + "." + suffix).str());
    auto yield = cast<ds::YieldOp>(clone.getBody().front().back());
    OpBuilder builder(yield);
    Value triangle;
    if (against) {
      IRMapping map;
      for (Operation &inner : against.getBody().front().without_terminator())
        builder.clone(inner, map);
      triangle = map.lookup(against.getYielded());
    }
    yield->setOperand(0, ds::QuantizeWeightOp::create(builder, recipe.getLoc(), type, part, yield.getOperand(0),
                                                      triangle, how.bits, how.group, how.isAsymmetric));
    symbols.insert(clone, recipe->getIterator());
    return clone;
  }

  /// The ten weights that lost most, the worst first.
  void noteErrors() {
    constexpr size_t shown = 10;
    llvm::sort(errors, [](const auto &a, const auto &b) {
      return std::pair(-a.second.relative, a.first) < std::pair(-b.second.relative, b.first);
    });
    for (const auto &[name, error] : ArrayRef(errors).take_front(shown))
      report.note("  " + name + ": " + describe(error));
  }

  ModuleOp module;
  const Options options;
  PassReport &report;
  SymbolTable symbols;
  static constexpr int64_t finestGroup = 32;
  llvm::DenseMap<Attribute, StringRef> sensitive; // by recipe, each with the reason
  DictionaryAttr triangles;                       // null without calibration
  RecipeEvaluator evaluator;
  llvm::DenseMap<Attribute, Quantized> known; // by recipe
  std::vector<std::pair<std::string, QuantizationError>> errors;
  std::string firstReason;
  bool isBroken = false;
};

struct QuantizeWeights : deepstride::impl::QuantizeWeightsBase<QuantizeWeights>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    if (bits != 8 && bits != 4)
      return fail("bits: expected 8 or 4, found " + Twine(bits.getValue()));
    if (group < 0 || group % 2 != 0 || group > (int64_t(1) << 20))
      return fail("group: expected 0 or an even number of at most 1048576, found " + Twine(group.getValue()));
    if (scheme != "symmetric" && scheme != "asymmetric")
      return fail("scheme: expected symmetric or asymmetric, found '" + scheme.getValue() + "'");
    std::string wrong;
    if (!keep.empty() && !llvm::Regex(keep.getValue()).isValid(wrong))
      return fail("keep: expected a regular expression, found '" + keep.getValue() + "': " + wrong);
    for (StringRef what : {"weights quantized", "products with codes", "products kept", "bytes before", "bytes after"})
      count(what, 0);
    Options options{{bits, group, scheme == "asymmetric"}, keep, mixed};
    if (failed(WeightQuantizer(getOperation(), options, *this).run()))
      signalPassFailure();
  }

  void fail(const Twine &message) {
    getOperation().emitError("ds-quantize-weights: ") << message;
    signalPassFailure();
  }
};

} // namespace
