// ds-fold-shapes: replaces shape arithmetic by its symbolic value. It runs the size analysis over a function, writes
// what it knows as constants, sizes and types, and removes movement that turns out to move nothing. Data constants are
// left to ds-fold-constants.
//
//   %0 = ds.shape ["batch", "seq"] : tensor<2xi64>            %0 = ds.shape ["batch*seq"] : tensor<1xi64>
//   %1 = ds.reduce prod %0 axes [0] keep true ...        =>
#include "dialects/ds/Requirements.h"
#include "mlir/IR/Iterators.h"
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"
#include "passes/graph/ShapeArithmetic.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_FOLDSHAPES
#include "passes/graph/Passes.h.inc"

/// The operand that an op passes on unchanged, judged by sizes: types alone do not see that "seq" is "seq".
static Value findForwarded(Operation *op, const SizeAnalysis &analysis) {
  if (auto concat = dyn_cast<ds::ConcatOp>(op))
    return concat.getInputs().size() == 1 ? concat.getInputs().front() : Value();
  if (auto cast = dyn_cast<ds::CastOp>(op))
    return cast.getInput().getType().getElementType() == cast.getTo() ? cast.getInput() : Value();
  if (auto slice = dyn_cast<ds::SliceOp>(op)) {
    auto starts = sizesFromAttribute(slice.getStarts());
    if (!starts || llvm::any_of(*starts, [](const SizeExpr &start) { return !start.isConstant(0); }) ||
        llvm::any_of(slice.getSteps(), [](int64_t step) { return step != 1; }))
      return {};
  } else if (!isa<ds::ReshapeOp, ds::BroadcastOp>(op)) {
    return {};
  }
  bool sameSizes = analysis.facts(op->getOperand(0)).sizes == analysis.facts(op->getResult(0)).sizes;
  return sameSizes ? op->getOperand(0) : Value();
}

/// Whether every user follows when a value's type becomes more static. Region ops compare types with their results.
static bool mayRefine(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) { return isa<ds::ResultInference, func::ReturnOp>(user); });
}

namespace {
struct FoldShapes : impl::FoldShapesBase<FoldShapes>, PassReport {
  void runOnOperation() override {
    count("folded", 0);
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    eraseDeadOps(function); // the model's own: what is unread from here on was replaced
    auto analysis = SizeAnalysis::run(function);
    if (failed(analysis))
      return signalPassFailure();
    bool legal = true;
    function.walk([&](Operation *op) { legal &= succeeded(rewriteSizes(op, {})); });
    if (!legal)
      return signalPassFailure();
    fold(function, *analysis);
    refine(function, *analysis);
    if (failed(eraseReplacedOps(function)))
      return signalPassFailure();
  }

  void fold(func::FuncOp function, SizeAnalysis &analysis) {
    SmallVector<Operation *> ops;
    function.walk([&](ds::ResultInference op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (op->use_empty())
        continue;
      joinReshapes(op);
      if (auto known = findKnownValue(op, analysis)) {
        replace(op, *known, analysis);
        count("folded");
      } else if (Value forwarded = findForwarded(op, analysis)) {
        // A returned value keeps its own name through the op that returns it.
        if (forwarded.getType() != op->getResult(0).getType() && !mayRefine(op->getResult(0)))
          continue;
        op->getResult(0).replaceAllUsesWith(forwarded);
        count("folded");
      }
    }
  }

  /// A reshape of a reshape reads what that one reads.
  static void joinReshapes(Operation *op) {
    auto outer = dyn_cast<ds::ReshapeOp>(op);
    while (auto inner = outer ? outer.getInput().getDefiningOp<ds::ReshapeOp>() : ds::ReshapeOp())
      outer.getInputMutable().assign(inner.getInput());
  }

  void replace(Operation *op, const KnownValue &known, SizeAnalysis &analysis) {
    OpBuilder builder(op);
    const TensorFacts &facts = analysis.facts(op->getResult(0));
    Operation *simple = known.elements
                            ? ds::ConstantOp::create(builder, op->getLoc(), known.elements).getOperation()
                            : ds::ShapeOp::create(builder, op->getLoc(), facts.type(), known.sizes).getOperation();
    keepNames(op, simple);
    analysis.set(simple->getResult(0), facts);
    // Where a user compares types, the value takes the old type; its sizes are the same.
    if (simple->getResult(0).getType() != op->getResult(0).getType() && !mayRefine(op->getResult(0)))
      return simple->erase();
    op->getResult(0).replaceAllUsesWith(simple->getResult(0));
  }

  void refine(func::FuncOp function, const SizeAnalysis &analysis) {
    function.walk([&](ds::ResultInference op) {
      for (Value result : op->getResults()) {
        const TensorFacts *facts = analysis.lookup(result);
        if (!facts || !facts->elementType || facts->type() == result.getType() || !mayRefine(result))
          continue;
        result.setType(facts->type());
        count("refined");
      }
    });
    SmallVector<Type> results(function.getResultTypes());
    function.walk([&](func::ReturnOp op) { results.assign(op.getOperandTypes().begin(), op.getOperandTypes().end()); });
    function.setType(FunctionType::get(&getContext(), function.getArgumentTypes(), results));
  }
};
} // namespace

} // namespace deepstride
