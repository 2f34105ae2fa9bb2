// ds-quantize-weights: stores the weights of products in 8 or 4 bits. Works on every ds.linear whose weight is a
// ds.weight of f32, or its cast to f64: the weight's recipe goes on to codes, scales and, where asked for, zero points,
// which packaging computes one weight at a time. Other uses of a weight, such as the rows of a tied embedding, keep
// what is stored for them. Layouts are left to ds-pack-weights.
// With `mixed` weights that results depend on most are stored in finer steps (SensitiveWeights.h), instead of
// short groups in 8 bits as floats of 16.
//
//   %y = ds.linear %x, %w           %y = ds.linear %x, %codes scales %scales {group = 32}
#include "passes/Report.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/Calibration.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/WeightStorage.h"

namespace deepstride {
#define GEN_PASS_DEF_QUANTIZEWEIGHTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

class WeightQuantizer {
public:
  WeightQuantizer(ModuleOp module, const WeightOptions &options, PassReport &report)
      : module(module), keep(options.keep), report(report), storage(module, options, report) {}

  LogicalResult run() {
    warnOfNoName();
    SmallVector<ds::LinearOp> products;
    module.walk([&](ds::LinearOp op) { products.push_back(op); });
    for (ds::LinearOp op : products)
      quantize(op);
    if (storage.isBroken())
      return failure();
    module->removeAttr(trianglesAttr);
    eraseUnusedRecipes(module);
    storage.noteErrors();
    if (storage.hasAny() || hasTables())
      return success();
    bool hasFilters = module.walk([](ds::ConvOp) { return WalkResult::interrupt(); }).wasInterrupted();
    std::string none = hasFilters ? "no product has a weight, and filters are kept for the reasons in the remarks"
                                  : "no product has a weight, and no table of f32 with more than " +
                                        std::to_string(ds::ConstantOp::byteLimit) + " bytes is left to quantize";
    return module.emitError("ds-quantize-weights: no weight was quantized: ")
           << (firstReason.empty() ? none : firstReason);
  }

private:
  /// Of an expression that keeps nothing, as of a name that was mistyped.
  void warnOfNoName() {
    auto matches = [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value value) {
        auto cast = value.getDefiningOp<ds::CastOp>(); // of --reference=f64
        auto weight = (cast ? cast.getInput() : value).getDefiningOp<ds::WeightOp>();
        return weight && isKept(keep, weight.getRecipe(), op);
      });
    };
    bool isMatched =
        module.walk([&](Operation *op) { return matches(op) ? WalkResult::interrupt() : WalkResult::advance(); })
            .wasInterrupted();
    if (!keep.empty() && !isMatched)
      module.emitWarning("ds-quantize-weights: keep: '")
          << keep << "' matches no name of a weight, nor of what reads one";
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
    ProductWeight found = weightOf(op, keep);
    ds::WeightOp weight = found.weight;
    ds::CastOp cast = found.cast;
    StringRef name = weight ? weight.getRecipe() : StringRef();
    if (!found.reason.empty())
      return keepAs(op, name, found.reason);
    const StoredWeight &parts = storage.of(op, weight);
    if (!parts.reason.empty())
      return keepAs(op, name, parts.reason);
    if (parts.isLeft)
      return report.count("products with floats of 16 bits");

    OpBuilder builder(op);
    Type element = mlir::cast<RankedTensorType>(op.getInput().getType()).getElementType();
    auto stored = [&](ds::RecipeOp recipe) -> Value {
      return ds::WeightOp::create(builder, weight.getLoc(), recipe.getYielded().getType(),
                                  FlatSymbolRefAttr::get(recipe));
    };
    auto widened = [&](Value value) -> Value { // with --reference=f64
      return cast ? ds::CastOp::create(builder, weight.getLoc(),
                                       mlir::cast<RankedTensorType>(value.getType()).clone(element), value,
                                       TypeAttr::get(element))
                  : value;
    };
    if (parts.halves) {
      op.getWeightMutable().assign(widened(stored(parts.halves)));
      op.setWide(!cast);
      report.count("products with floats of 16 bits");
    } else {
      op.getWeightMutable().assign(stored(parts.codes));
      op.getScalesMutable().assign(widened(stored(parts.scales)));
      if (parts.zeroPoints)
        op.getZeroPointsMutable().assign(stored(parts.zeroPoints));
      if (parts.group)
        op.setGroup(parts.group);
      report.count("products with codes");
    }
    for (Operation *unused : {cast ? cast.getOperation() : nullptr, weight.getOperation()})
      if (unused && unused->use_empty())
        unused->erase();
  }

  ModuleOp module;
  const std::string keep;
  PassReport &report;
  WeightStorage storage;
  std::string firstReason;
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
    if (failed(verifyKeep(getOperation(), "ds-quantize-weights", keep)))
      return signalPassFailure();
    for (StringRef what : {"weights quantized", "products with codes", "products kept", "bytes before", "bytes after"})
      count(what, 0);
    if (floats != "f16" && floats != "bf16")
      return fail("floats: expected f16 or bf16, found '" + floats.getValue() + "'");
    WeightOptions options{{bits, group, scheme == "asymmetric"}, keep, mixed, floats == "bf16"};
    if (failed(WeightQuantizer(getOperation(), options, *this).run()))
      signalPassFailure();
  }

  void fail(const Twine &message) {
    getOperation().emitError("ds-quantize-weights: ") << message;
    signalPassFailure();
  }
};

} // namespace
