// ds-recompose-layer-norm: finds layer normalization in chains of primitive ops. It starts at the division of a centred
// value by its deviation and takes in the scale and the bias that follow. RMS norms and norms over other than the last
// axes stay as they are.
//
//   %m = ds.reduce mean %x axes [1] keep true             %y = ds.layer_norm %x, %g, %b axis 1 epsilon 1.0e-5
//   %d = ds.binary sub %x, %m
//   %v = ds.reduce mean (%d * %d) axes [1] keep true  =>
//   %y = %d / ds.unary sqrt (%v + 1.0e-5) * %g + %b
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOMPOSELAYERNORM
#include "passes/graph/Passes.h.inc"

namespace {
/// A chain that divides a centred value by its deviation.
struct Chain {
  Value input;
  int64_t axis;
  double epsilon;
};
} // namespace

/// The centred value and the deviation of `d / s`, `d * reciprocal(s)` or `d * (1 / s)`.
static std::optional<std::pair<Value, Value>> splitQuotient(ds::BinaryOp op) {
  if (op.getKind() == ds::BinaryKind::div)
    return std::pair(op.getLhs(), op.getRhs());
  if (op.getKind() != ds::BinaryKind::mul)
    return std::nullopt;
  for (auto [centred, factor] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    if (ds::UnaryOp reciprocal = unaryOf(factor, ds::UnaryKind::reciprocal))
      return std::pair(centred, reciprocal.getInput());
    if (ds::BinaryOp quotient = binaryOf(factor, ds::BinaryKind::div))
      if (scalarOf(quotient.getLhs()) == 1.0)
        return std::pair(centred, quotient.getRhs());
  }
  return std::nullopt;
}

/// The mean that a reduction over the last axes keeps in place.
static ds::ReduceOp meanOf(Value value) {
  auto reduce = value.getDefiningOp<ds::ReduceOp>();
  return reduce && reduce.getKind() == ds::ReduceKind::mean && reduce.getKeepDims() ? reduce : ds::ReduceOp();
}

static bool areLastAxes(ArrayRef<int64_t> axes, int64_t rank) {
  for (auto [index, axis] : llvm::enumerate(axes))
    if (axis != rank - static_cast<int64_t>(axes.size() - index))
      return false;
  return !axes.empty();
}

/// Emits a remark where the chain is a norm up to the point that failed.
static std::optional<Chain> matchChain(ds::BinaryOp op) {
  auto quotient = splitQuotient(op);
  ds::UnaryOp root = quotient ? unaryOf(quotient->second, ds::UnaryKind::sqrt) : ds::UnaryOp();
  ds::BinaryOp shifted = root ? binaryOf(root.getInput(), ds::BinaryKind::add) : ds::BinaryOp();
  ds::BinaryOp centred = quotient ? binaryOf(quotient->first, ds::BinaryKind::sub) : ds::BinaryOp();
  ds::ReduceOp mean = centred ? meanOf(centred.getRhs()) : ds::ReduceOp();
  if (!shifted || !mean || mean.getInput() != centred.getLhs())
    return std::nullopt;

  auto remark = [&](const Twine &reason) {
    op.emitRemark() << "layer norm not recomposed: " << reason;
    return std::nullopt;
  };
  auto epsilon = matchScalar(shifted, ds::BinaryKind::add);
  if (!epsilon)
    return remark("epsilon is not a constant");
  ds::ReduceOp variance = meanOf(epsilon->tensor);
  if (!variance || variance.getAxes() != mean.getAxes())
    return remark("the variance is not a mean over the axes of the mean");
  if (matchSquare(variance.getInput()) != centred.getResult())
    return remark("the variance is not that of the centred value");
  auto type = cast<RankedTensorType>(centred.getLhs().getType());
  if (!areLastAxes(mean.getAxes(), type.getRank()))
    return remark("the axes are not the last ones");
  if (!isa<FloatType>(type.getElementType()) || type != op.getType())
    return remark("the chain changes the type");
  return Chain{centred.getLhs(), mean.getAxes().front(), epsilon->scalar};
}

/// The other operand of the value's only user, if that user is of this kind and the operand has the normalized shape.
static ds::BinaryOp onlyUser(Value value, ds::BinaryKind kind, ArrayRef<int64_t> shape, Value &parameter) {
  auto user = value.hasOneUse() ? dyn_cast<ds::BinaryOp>(*value.getUsers().begin()) : ds::BinaryOp();
  if (!user || user.getKind() != kind || user.getType() != value.getType())
    return {};
  parameter = user.getLhs() == value ? user.getRhs() : user.getLhs();
  auto type = cast<RankedTensorType>(parameter.getType());
  return type.getShape() == shape && type.hasStaticShape() ? user : ds::BinaryOp();
}

namespace {
struct RecomposeLayerNorm : impl::RecomposeLayerNormBase<RecomposeLayerNorm>, PassReport {
  void runOnOperation() override {
    count("recomposed", 0);
    SmallVector<ds::BinaryOp> ops;
    getOperation().walk([&](ds::BinaryOp op) { ops.push_back(op); });
    for (ds::BinaryOp op : ops)
      if (auto chain = matchChain(op))
        rewrite(op, *chain);
    eraseDeadOps(getOperation());
  }

  void rewrite(ds::BinaryOp normalized, const Chain &chain) {
    auto type = cast<RankedTensorType>(chain.input.getType());
    ArrayRef<int64_t> shape = type.getShape().drop_front(chain.axis);
    ds::BinaryOp last = normalized;
    Value scale, bias, parameter;
    if (ds::BinaryOp scaled = onlyUser(last.getResult(), ds::BinaryKind::mul, shape, parameter)) {
      last = scaled;
      scale = parameter;
      if (ds::BinaryOp biased = onlyUser(last.getResult(), ds::BinaryKind::add, shape, parameter)) {
        last = biased;
        bias = parameter;
      }
    }
    // At the last op of the chain: its parameters may be defined after the norm began.
    OpBuilder builder(last);
    if (!scale) {
      auto ones =
          RankedTensorType::get(ShapedType::isDynamicShape(shape) ? ArrayRef<int64_t>() : shape, type.getElementType());
      scale = ds::ConstantOp::create(builder, last.getLoc(),
                                     DenseElementsAttr::get(ones, FloatAttr::get(type.getElementType(), 1.0)));
    }
    auto norm = ds::LayerNormOp::create(builder, last.getLoc(), type, chain.input, scale, bias, chain.axis,
                                        llvm::APFloat(chain.epsilon));
    keepNames(last, norm);
    last.getResult().replaceAllUsesWith(norm.getResult());
    count("recomposed");
  }
};
} // namespace

} // namespace deepstride
