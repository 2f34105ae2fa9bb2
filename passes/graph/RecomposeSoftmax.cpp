// ds-recompose-softmax: finds softmax in chains of exp and sums. It starts at the quotient of an exponential by its sum
// along one axis. A mask that was added before stays an op of its own, the operand's producer.
//
//   %m = ds.reduce max %x axes [1] keep true              %y = ds.softmax %x axis 1 log false
//   %e = ds.unary exp (%x - %m)                       =>
//   %y = %e / ds.reduce sum %e axes [1] keep true
#include "dialects/ds/Requirements.h"
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOMPOSESOFTMAX
#include "passes/graph/Passes.h.inc"

static ds::ReduceOp reduceOf(Value value, ds::ReduceKind kind) {
  auto reduce = value.getDefiningOp<ds::ReduceOp>();
  return reduce && reduce.getKind() == kind ? reduce : ds::ReduceOp();
}

namespace {
struct RecomposeSoftmax : impl::RecomposeSoftmaxBase<RecomposeSoftmax>, PassReport {
  void runOnOperation() override {
    count("recomposed", 0);
    SmallVector<ds::BinaryOp> ops;
    getOperation().walk([&](ds::BinaryOp op) { ops.push_back(op); });
    for (ds::BinaryOp op : ops) {
      if (op.getKind() == ds::BinaryKind::div)
        match(op, op.getLhs(), op.getRhs());
      if (op.getKind() != ds::BinaryKind::mul)
        continue;
      if (ds::UnaryOp reciprocal = unaryOf(op.getRhs(), ds::UnaryKind::reciprocal))
        match(op, op.getLhs(), reciprocal.getInput());
      else if (ds::UnaryOp reciprocal = unaryOf(op.getLhs(), ds::UnaryKind::reciprocal))
        match(op, op.getRhs(), reciprocal.getInput());
    }
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
  }

  void match(ds::BinaryOp root, Value numerator, Value denominator) {
    ds::UnaryOp exponential = unaryOf(numerator, ds::UnaryKind::exp);
    ds::ReduceOp sum = reduceOf(denominator, ds::ReduceKind::sum);
    if (!exponential || !sum || sum.getInput() != numerator)
      return;
    auto remark = [&](StringRef reason) { root.emitRemark() << "softmax not recomposed: " << reason; };
    if (sum.getAxes().size() != 1)
      return remark("the sum is over several axes");
    int64_t axis = sum.getAxes()[0];
    auto type = cast<RankedTensorType>(numerator.getType());
    // Without the axis kept, numpy aligns the sums with other axes, unless the axis is the first.
    if (!sum.getKeepDims() && axis != 0)
      return remark("the sum does not keep its axis");
    if (!isa<FloatType>(type.getElementType()) || root.getType() != type)
      return remark("the quotient changes the type");
    Value input = exponential.getInput();
    if (ds::BinaryOp centred = binaryOf(input, ds::BinaryKind::sub)) {
      if (ds::ReduceOp maximum = reduceOf(centred.getRhs(), ds::ReduceKind::max);
          maximum && maximum.getInput() == centred.getLhs()) {
        if (maximum.getAxes() != sum.getAxes() || maximum.getKeepDims() != sum.getKeepDims())
          return remark("maximum and sum have different axes");
        input = centred.getLhs();
      }
    }
    OpBuilder builder(root);
    auto softmax = ds::SoftmaxOp::create(builder, root.getLoc(), type, input, axis, /*log=*/false);
    keepNames(root, softmax);
    root.getResult().replaceAllUsesWith(softmax.getResult());
    count("recomposed");
  }
};
} // namespace

} // namespace deepstride
