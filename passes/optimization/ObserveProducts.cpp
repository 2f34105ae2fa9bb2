// ds-observe-products: makes a program sum x x^T over the rows x that weights are multiplied by, which is what their
// rounding is judged by. Works on the products that ds-quantize-weights quantizes, outside of branches and loops; the
// sums are states in f64. Results go, and with them what only they need: the program is run for its states.
//
//   %y = ds.linear %x, %w              %p = ds.matmul %r, %r transpose [true, false]     %r: %x as a matrix
//   return %y                    =>    %n = ds.binary add %s, (ds.cast %p to f64)
//                                      return %n
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/optimization/Calibration.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace deepstride {
#define GEN_PASS_DEF_OBSERVEPRODUCTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

/// Rows that are multiplied by a weight. How long they are may be known from the weight alone.
struct Rows {
  Value value;
  int64_t size;
  bool operator==(const Rows &other) const { return value == other.value; }
};

struct ObserveProducts : deepstride::impl::ObserveProductsBase<ObserveProducts>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    count("weights observed", 0);
    ModuleOp module = getOperation();
    if (failed(verifyKeep(module, "ds-observe-products", keep)))
      return signalPassFailure();
    OpBuilder builder(module.getContext());
    SmallVector<Rows> chosen;
    NamedAttrList observed;
    int64_t number = 0, used = 0;
    auto inputs = inputsByWeight();
    for (const auto &[weight, values] : inputs) {
      if (number++ < first)
        continue;
      int64_t more = 0;
      for (const Rows &rows : values)
        more += llvm::is_contained(chosen, rows) ? 0 : 8 * rows.size * rows.size;
      if (!chosen.empty() && more > bytes - used) {
        --number;
        break;
      }
      used += more;
      SmallVector<Attribute> states;
      for (const Rows &rows : values) {
        if (!llvm::is_contained(chosen, rows))
          chosen.push_back(rows);
        states.push_back(builder.getStringAttr(nameOf(llvm::find(chosen, rows) - chosen.begin())));
      }
      observed.set(weight, builder.getArrayAttr(states));
      count("weights observed");
    }
    module->setAttr(observedAttr, observed.getDictionary(module.getContext()));
    if (number < static_cast<int64_t>(inputs.size()))
      module->setAttr(unobservedAttr, builder.getI64IntegerAttr(number));
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(ds::entryAttr) && failed(rewrite(function, chosen)))
        return signalPassFailure();
    eraseDeadOps(module);
  }

  static std::string nameOf(int64_t input) { return "calibration." + std::to_string(input); }

  /// What the weights are multiplied by, in the order of the program; each once.
  llvm::MapVector<StringRef, SmallVector<Rows>> inputsByWeight() {
    llvm::MapVector<StringRef, SmallVector<Rows>> inputs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(ds::entryAttr) && !function.isExternal())
        for (auto op : function.front().getOps<ds::LinearOp>())
          if (ProductWeight found = weightOf(op, keep); found.reason.empty()) {
            Rows rows{op.getInput(), cast<RankedTensorType>(found.weight.getType()).getDimSize(0)};
            SmallVector<Rows> &known = inputs[found.weight.getRecipe()];
            if (!llvm::is_contained(known, rows))
              known.push_back(rows);
          }
    return inputs;
  }

  /// Leaves the function its states, and a new one for each of the inputs that are its own.
  static LogicalResult rewrite(func::FuncOp function, ArrayRef<Rows> chosen) {
    OpBuilder builder(function.getContext());
    auto ends = cast<func::ReturnOp>(function.front().getTerminator());
    for (unsigned result = function.getNumResults(); result-- > 0;)
      if (!function.getResultAttr(result, ds::stateAttr)) {
        (void)function.eraseResult(result);
        ends->eraseOperand(result);
      }
    SmallVector<std::pair<Rows, BlockArgument>> sums;
    for (auto [number, rows] : llvm::enumerate(chosen)) {
      Value value = rows.value;
      if (value.getParentRegion() != &function.getBody())
        continue;
      int64_t size = rows.size;
      auto type = RankedTensorType::get({size, size}, builder.getF64Type());
      auto name = builder.getStringAttr(nameOf(static_cast<int64_t>(number)));
      NamedAttrList argument, result;
      argument.set(ds::nameAttr, name);
      argument.set(ds::dimsAttr, toAttribute(function.getContext(), SizeVector{size, size}));
      argument.set(ds::stateAttr, name);
      result.set(ds::stateAttr, name);
      unsigned place = function.getNumArguments();
      if (failed(function.insertArgument(place, type, argument.getDictionary(function.getContext()), value.getLoc())) ||
          failed(function.insertResult(function.getNumResults(), type, result.getDictionary(function.getContext()))))
        return failure();
      sums.push_back({rows, function.getArgument(place)});
    }
    auto analysis = SizeAnalysis::run(function);
    if (failed(analysis))
      return failure();
    for (auto [rows, sum] : sums) {
      Value value = rows.value;
      builder.setInsertionPoint(ends);
      DsBuilder b(builder, *analysis);
      b.setLocation(value.getLoc());
      SizeExpr count = 1;
      SizeVector sizes = b.sizes(value);
      for (const SizeExpr &size : ArrayRef(sizes).drop_back())
        count = count * size;
      Value matrix = b.reshape(value, {count, rows.size});
      Value squares = b.cast(b.matmul(matrix, matrix, /*transposeA=*/true), b.f64());
      Value next = b.add(sum, squares);
      if (!next)
        return failure();
      ends->insertOperands(ends->getNumOperands(), next);
    }
    return success();
  }
};

} // namespace
