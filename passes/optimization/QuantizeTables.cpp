// ds-quantize-tables: stores the tables from which rows are gathered, as those of embeddings, in 8 bits with a scale
// for each row, or group of its elements. Works on every ds.gather along the first axis of a matrix of f32 that is a
// ds.weight, or its cast to f64.
//
//   %y = ds.gather 0 %table, %i    =>  %y = ds.gather 0 %codes, %i scales %scales
//
// A product with the same table, as that of a tied embedding, has codes of its own, which lie as its kernel reads them.
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/Calibration.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/HostQuantization.h"
#include "dialects/ds/RecipeEvaluator.h"
#include "llvm/Support/FormatVariadic.h"

namespace deepstride {
#define GEN_PASS_DEF_QUANTIZETABLES
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// What became of a table: the recipes of its parts, or the reason why it is kept.
struct Table {
  ds::RecipeOp codes, scales;
  int64_t groups = 1; // of a row
  std::string reason;
};

struct QuantizeTables : deepstride::impl::QuantizeTablesBase<QuantizeTables>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    RecipeEvaluator evaluating; // passes can be copied, what it has read cannot
    evaluator = &evaluating;
    if (group < 0) {
      getOperation().emitError("ds-quantize-tables: group: expected at least 0, found ") << group.getValue();
      return signalPassFailure();
    }
    if (failed(verifyKeep(getOperation(), "ds-quantize-tables", keep)))
      return signalPassFailure();
    for (StringRef what : {"tables quantized", "bytes before", "bytes after"})
      count(what, 0);
    RecipeBook book(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<ds::GatherOp> gathers;
      function.walk([&](ds::GatherOp op) { gathers.push_back(op); });
      auto analysis = SizeAnalysis::run(function);
      if (failed(analysis))
        return signalPassFailure();
      for (ds::GatherOp op : gathers)
        if (failed(quantize(op, book, *analysis)))
          return signalPassFailure();
    }
    known.clear();
    eraseDeadOps(getOperation());
    eraseUnusedRecipes(getOperation());
  }

  LogicalResult quantize(ds::GatherOp op, RecipeBook &book, SizeAnalysis &analysis) {
    auto cast = op.getInput().getDefiningOp<ds::CastOp>();
    auto weight = (cast ? cast.getInput() : op.getInput()).getDefiningOp<ds::WeightOp>();
    if (!weight || op.getAxis() != 0 || typeOf(weight).getRank() != 2 || !typeOf(weight).getElementType().isF32() ||
        (cast && !typeOf(cast).getElementType().isF64()))
      return success(); // no table of floats
    auto recipe = book.recipeOf(weight);
    auto [found, isNew] = known.try_emplace(recipe);
    Table &table = found->second;
    if (isNew && failed(make(op, recipe, book, table)))
      return failure();
    if (isKept(keep, recipe.getSymName(), op))
      op.emitRemark() << "table '" << recipe.getSymName() << "' is kept: '" << keep
                      << "' matches its name or its gather's";
    else if (!table.codes)
      op.emitRemark() << "table '" << recipe.getSymName() << "' is kept: " << table.reason;
    else
      replace(op, table, analysis);
    return success();
  }

  /// Rows of codes times their scales. What computes on f64 gets the same f32.
  static void replace(ds::GatherOp op, const Table &table, SizeAnalysis &analysis) {
    DsBuilder b(OpBuilder(op), analysis);
    b.setLocation(op.getLoc());
    auto part = [&](ds::RecipeOp recipe) {
      return b.weight(FlatSymbolRefAttr::get(recipe), typeOf(recipe.getYielded()));
    };
    Value rows = b.gatherCodes(part(table.codes), op.getIndices(), part(table.scales));
    Value result = b.cast(rows, typeOf(op.getResult()).getElementType());
    keepNames(op, result.getDefiningOp());
    op.getResult().replaceAllUsesWith(result);
  }

  LogicalResult make(ds::GatherOp op, ds::RecipeOp recipe, RecipeBook &book, Table &table) {
    auto type = typeOf(recipe.getYielded());
    int64_t rows = type.getDimSize(0), length = type.getDimSize(1);
    int64_t part = group > 0 && length % group == 0 ? group.getValue() : length;
    table.groups = length / std::max<int64_t>(part, 1);
    int64_t before = 4 * rows * length, after = rows * length + 4 * rows * table.groups;
    if (after >= before) {
      table.reason = llvm::formatv("codes and scales take {0} bytes, its elements {1}", after, before);
      return success();
    }
    auto elements = evaluator->evaluate(recipe);
    if (failed(elements))
      return failure(); // which was diagnosed
    QuantizationScheme how{8, table.groups > 1 ? part : 0, false};
    auto error = quantizationError(transposeOnHost(*elements, {1, 0}), how);
    if (!error) {
      table.reason = "it has elements that are not finite, or would not be as codes";
      return success();
    }
    // A row of the table is a column of what ds.quantize_weight takes.
    auto derived = [&](ds::QuantizedPart kind, Type element, int64_t size, const char *suffix) {
      return book.derive(recipe, suffix, [&](OpBuilder &b, const IRMapping &map) -> Value {
        auto turned = [&](Value value, ArrayRef<int64_t> shape) -> Value {
          return ds::TransposeOp::create(b, recipe.getLoc(), typeOf(value).clone(shape), value,
                                         b.getDenseI64ArrayAttr({1, 0}));
        };
        Value columns = turned(map.lookup(recipe.getYielded()), {length, rows});
        Value made = ds::QuantizeWeightOp::create(b, recipe.getLoc(), RankedTensorType::get({size, rows}, element),
                                                  kind, columns, Value(), how.bits, how.group, false);
        return turned(made, {rows, size});
      });
    };
    Builder types(op.getContext());
    table.codes = derived(ds::QuantizedPart::codes, types.getI8Type(), length, "rows");
    table.scales = derived(ds::QuantizedPart::scales, types.getF32Type(), table.groups, "row_scales");
    std::string text = describe(*error);
    op.emitRemark() << llvm::formatv("table '{0}' in 8 bits: {1} bytes become {2}, {3}", recipe.getSymName(), before,
                                     after, text)
                           .str();
    note("  " + recipe.getSymName().str() + ": " + text);
    count("tables quantized");
    count("bytes before", before);
    count("bytes after", after);
    return success();
  }

  RecipeEvaluator *evaluator = nullptr;
  llvm::DenseMap<Operation *, Table> known; // by recipe
};

} // namespace
