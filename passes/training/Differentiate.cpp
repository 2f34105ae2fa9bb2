// ds-differentiate: replaces each train.gradient by the ops of its region and, behind them, their derivatives in the
// opposite order. What the derivative of an op is, rules say; sharing with the rest of the program is left to CSE.
//
//   %dx = train.gradient (%x) {                        %0 = ds.unary exp %x : ...
//   ^bb0(%a: tensor<f32>):                             %1 = ds.constant dense<1.0> : tensor<f32>
//     %0 = ds.unary exp %a : ...                 =>    %dx = ds.binary mul %1, %0 : ...
//     train.yield %0 : tensor<f32>
//   } : (tensor<f32>) -> tensor<f32>
#include "dialects/ds/Requirements.h"
#include "passes/Report.h"
#include "passes/training/Passes.h"
#include "passes/training/ReverseSweep.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/training/Passes.h.inc"

namespace {
struct Differentiate : impl::DifferentiateBase<Differentiate>, PassReport {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    SmallVector<train::GradientOp> gradients; // inner ones come first
    function.walk([&](train::GradientOp gradient) { gradients.push_back(gradient); });
    if (gradients.empty())
      return;
    auto analysis = SizeAnalysis::run(function);
    if (failed(analysis))
      return signalPassFailure();
    for (train::GradientOp gradient : gradients)
      if (failed(differentiate(gradient, *analysis)))
        return signalPassFailure();
    if (failed(eraseReplacedOps(function)))
      return signalPassFailure();
  }

  LogicalResult differentiate(train::GradientOp gradient, SizeAnalysis &analysis) {
    Block &body = gradient.getBody().front();
    DsBuilder builder(OpBuilder(body.getTerminator()), analysis);
    builder.setLocation(gradient.getLoc());
    auto derivatives = reverse(gradient, builder);
    if (failed(derivatives))
      return failure();
    for (auto [result, derivative] : llvm::zip_equal(gradient.getGradients(), *derivatives)) {
      nameAfter(derivative, result);
      result.replaceAllUsesWith(withType(derivative, result.getType(), builder));
    }
    for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), gradient.getOperands()))
      argument.replaceAllUsesWith(operand);
    body.getTerminator()->erase();
    gradient->getBlock()->getOperations().splice(gradient->getIterator(), body.getOperations());
    gradient.erase();
    count("gradients");
    return success();
  }

  /// The derivatives with respect to xs, computed at the end of the region.
  FailureOr<SmallVector<Value>> reverse(train::GradientOp gradient, DsBuilder &builder) {
    Block &body = gradient.getBody().front();
    auto xs = body.getArguments().take_front(gradient.getXs().size());
    Value y = cast<train::YieldOp>(body.getTerminator()).getValue();
    ReverseSweep sweep(body, ValueRange(xs));
    Value ones = builder.broadcast(builder.scalar(builder.element(y), 1), builder.sizes(y));
    if (failed(sweep.run(y, ones, builder)))
      return failure();
    if ((reversed += sweep.opCount()) > opLimit)
      return gradient.emitError() << "expected gradients through at most " << opLimit << " operations, found more";
    count("ops reversed", sweep.opCount());
    builder.setLocation(gradient.getLoc());
    SmallVector<Value> results;
    for (auto [index, x] : llvm::enumerate(xs)) {
      Value found = sweep.gradient(x);
      if (!found) {
        gradient.emitRemark() << "the value does not depend on x " << index << ": its gradient is 0 everywhere";
        found = builder.broadcast(builder.scalar(builder.element(x), 0), builder.sizes(x));
      }
      results.push_back(found);
    }
    return results;
  }

  /// The op of a derivative gets the ONNX name of the result that it replaces, unless it has one.
  static void nameAfter(Value derivative, OpResult result) {
    Operation *op = derivative.getDefiningOp();
    auto names = result.getOwner()->getAttrOfType<ArrayAttr>(ds::valueNameAttr);
    if (op && op->getNumResults() == 1 && names && !op->hasAttr(ds::valueNameAttr))
      op->setAttr(ds::valueNameAttr, ArrayAttr::get(op->getContext(), {names[result.getResultNumber()]}));
  }

  /// The sizes may be known better than the types around say.
  static Value withType(Value value, Type type, DsBuilder &builder) {
    if (value.getType() == type)
      return value;
    Value same =
        ds::ReshapeOp::create(builder.getBuilder(), value.getLoc(), type, value, builder.list(builder.sizes(value)));
    builder.getAnalysis().set(same, builder.facts(value));
    return same;
  }

  /// Gradients of gradients multiply ops; what a model asks for must stay in bounds.
  static constexpr int64_t opLimit = 1'000'000;
  int64_t reversed = 0;
};
} // namespace

} // namespace deepstride
