// ds-quantize-activations: products whose weights are bytes with one scale for each column take their rows in bytes,
// too, each with a scale of its own, so that what is multiplied are bytes. Rows are quantized while the program runs,
// once for all products that read them. Works on what ds-quantize-weights made.
//
//   %y = ds.linear %x, %w scales %s        %q, %r = ds.quantize_rows %x
//                                          %p = ds.linear %q, %w, %b : (ui8, i8) -> i32
//                                     =>   %y = ds.binary mul (ds.binary mul (ds.cast %p to f32), %s), %r
//
// Codes of rows are stored 128 higher; the bias %b is -128 times the sums of the weight's columns.
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsBuilder.h"

namespace deepstride {
#define GEN_PASS_DEF_QUANTIZEACTIVATIONS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct QuantizeActivations : deepstride::impl::QuantizeActivationsBase<QuantizeActivations>, PassReport {
  void runOnOperation() override {
    count("products in bytes", 0);
    RecipeBook recipes(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<ds::LinearOp> products;
      function.walk([&](ds::LinearOp op) { products.push_back(op); });
      auto analysis = SizeAnalysis::run(function);
      if (failed(analysis))
        return signalPassFailure();
      llvm::DenseMap<Value, Values> rows; // by what is quantized
      for (ds::LinearOp op : products) {
        std::string reason = replace(op, recipes, *analysis, rows);
        if (reason.empty())
          count("products in bytes");
        else
          op.emitRemark() << "rows stay floats: " << reason;
      }
    }
    eraseDeadOps(getOperation());
    eraseUnusedRecipes(getOperation());
  }

  static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

  /// Why the product stays as it is; empty where it was replaced.
  static std::string replace(ds::LinearOp op, RecipeBook &recipes, SizeAnalysis &analysis,
                             llvm::DenseMap<Value, Values> &rows) {
    if (!op.getScales())
      return "the weight is not quantized";
    if (op.getGroup() || op.getZeroPoints() || !elementOf(op.getWeight()).isInteger(8) || op.getPanel() ||
        op.getTransposed())
      return "the weight has groups, zero points or fewer than 8 bits, or is packed";
    constexpr int64_t longest = int64_t(1) << 17; // sums of products of 7 bits and signs that fit 32
    if (int64_t depth = cast<RankedTensorType>(op.getWeight().getType()).getDimSize(0); depth > longest)
      return "its " + std::to_string(depth) + " rows are more than 131072, whose sums fit 32 bits";
    DsBuilder b(OpBuilder(op), analysis);
    b.setLocation(op.getLoc());
    Value weight = op.getWeight();
    Value sums = b.reduce(ds::ReduceKind::sum, b.cast(weight, b.i32()), {0}, /*keep=*/false);
    Value moved = recipes.store(b, b.mul(sums, -128));
    Value scales = recipes.store(b, b.reshape(op.getScales(), {b.sizes(op.getScales()).back()}));
    if (!moved || !scales)
      return "its weight is no constant";
    Values &quantized = rows[op.getInput()];
    if (quantized.empty()) {
      // Right behind the rows: every product that reads them comes later.
      OpBuilder builder(op);
      builder.setInsertionPointAfterValue(op.getInput());
      DsBuilder early(builder, analysis);
      early.setLocation(op.getLoc());
      quantized = early.finishAll(
          ds::QuantizeRowsOp::create(builder, op.getLoc(), early.placeholder(), early.placeholder(), op.getInput()));
    }
    Value product = b.create<ds::LinearOp>({quantized[0], weight, moved}, quantized[0], weight, moved, IntegerAttr(),
                                           IntegerAttr(), IntegerAttr(), UnitAttr());
    Value result = b.mul(b.mul(b.cast(product, elementOf(op.getInput())), scales), quantized[1]);
    if (op.getBias())
      result = b.add(result, op.getBias());
    keepNames(op, result.getDefiningOp());
    op.getResult().replaceAllUsesWith(result);
    return "";
  }
};

} // namespace
