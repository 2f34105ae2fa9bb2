// ds-recompose-layer-norm: finds layer normalization in chains of primitive ops. It starts at the division of a centred
// value by its deviation and takes in the scale and the bias that follow. RMS norms and norms over other than the last
// axes stay as they are.
//
//   %m = ds.reduce mean %x axes [1] keep true             %y = ds.layer_norm %x, %g, %b axis 1 epsilon 1.0e-5
//   %d = ds.binary sub %x, %m
//   %v = ds.reduce mean (%d * %d) axes [1] keep true  =>
//   %y = %d / ds.unary sqrt (%v + 1.0e-5) * %g + %b
#include "dialects/ds/Requirements.h"
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
  Value scale, bias; // where the chain holds them
};

/// The mean and the bias behind an x that was scaled before it was centred.
struct Shift {
  ds::ReduceOp mean;
  Value bias; // null where there is none
};
} // namespace

/// Emits a remark where the chain is a norm up to the point that failed.
static std::optional<Chain> matchChain(ds::BinaryOp op, const RootQuotient &quotient) {
  ds::BinaryOp shifted = binaryOf(quotient.radicand, ds::BinaryKind::add);
  ds::BinaryOp centred = binaryOf(quotient.numerator, ds::BinaryKind::sub);
  ds::ReduceOp mean = centred ? meanOf(centred.getRhs()) : ds::ReduceOp();
  if (!shifted || !mean || mean.getInput() != centred.getLhs())
    return std::nullopt;

  auto remark = [&](const Twine &reason) {
    remarkLeft(op, "layer norm", reason);
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
  return Chain{centred.getLhs(), mean.getAxes().front(), epsilon->scalar, {}, {}};
}

/// What is added to x * inverse: bias - mean * inverse, or that with the mean negated or without the bias.
static std::optional<Shift> matchShift(Value value, Value inverse) {
  auto meanTimes = [&](Value term, bool negated) {
    ds::BinaryOp product = binaryOf(term, ds::BinaryKind::mul);
    if (!product || (product.getLhs() != inverse && product.getRhs() != inverse))
      return ds::ReduceOp();
    Value mean = product.getLhs() == inverse ? product.getRhs() : product.getLhs();
    if (!negated)
      return meanOf(mean);
    ds::UnaryOp negation = unaryOf(mean, ds::UnaryKind::neg);
    return negation ? meanOf(negation.getInput()) : ds::ReduceOp();
  };
  if (ds::ReduceOp mean = meanTimes(value, true))
    return Shift{mean, {}};
  if (ds::BinaryOp rest = binaryOf(value, ds::BinaryKind::sub))
    if (ds::ReduceOp mean = meanTimes(rest.getRhs(), false))
      return Shift{mean, rest.getLhs()};
  if (ds::BinaryOp sum = binaryOf(value, ds::BinaryKind::add))
    for (unsigned i : {0, 1})
      if (ds::ReduceOp mean = meanTimes(sum->getOperand(i), true))
        return Shift{mean, sum->getOperand(1 - i)};
  return std::nullopt;
}

/// TensorFlow's batch_normalization over features: x * i + (bias - mean * i) with i = scale / deviation.
static std::optional<Chain> matchFolded(ds::BinaryOp op) {
  if (op.getKind() != ds::BinaryKind::add)
    return std::nullopt;
  for (auto [scaled, offset] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    ds::BinaryOp product = binaryOf(scaled, ds::BinaryKind::mul);
    for (unsigned i = 0; product && i < 2; ++i) {
      Value x = product->getOperand(i), inverse = product->getOperand(1 - i), scale;
      auto shift = matchShift(offset, inverse);
      if (!shift || shift->mean.getInput() != x)
        continue;
      Value radicand = inverseRootOf(inverse);
      if (auto scaledInverse = radicand ? ds::BinaryOp() : inverse.getDefiningOp<ds::BinaryOp>())
        if (auto quotients = rootQuotients(scaledInverse); !quotients.empty()) {
          scale = quotients[0].numerator;
          radicand = quotients[0].radicand;
        }
      if (!radicand)
        continue;
      auto remark = [&](const Twine &reason) {
        remarkLeft(op, "layer norm", reason);
        return std::nullopt;
      };
      auto epsilon = matchScalar(radicand, ds::BinaryKind::add);
      ds::ReduceOp variance = epsilon ? meanOf(epsilon->tensor) : ds::ReduceOp();
      Value squared = variance ? matchSquare(variance.getInput()) : Value();
      ds::BinaryOp centred = squared ? binaryOf(squared, ds::BinaryKind::sub) : ds::BinaryOp();
      if (!centred || centred.getLhs() != x || centred.getRhs() != shift->mean.getResult() ||
          variance.getAxes() != shift->mean.getAxes())
        return remark("the variance is not that of the centred value");
      auto type = cast<RankedTensorType>(x.getType());
      if (!areLastAxes(shift->mean.getAxes(), type.getRank()))
        return remark("the axes are not the last ones");
      int64_t axis = shift->mean.getAxes().front();
      ArrayRef<int64_t> shape = type.getShape().drop_front(axis);
      if ((scale && !isParameter(scale, shape)) || (shift->bias && !isParameter(shift->bias, shape)) ||
          type != op.getType())
        return remark("scale and bias do not have the shape of the normalized axes");
      return Chain{x, axis, epsilon->scalar, scale, shift->bias};
    }
  }
  return std::nullopt;
}

namespace {
struct RecomposeLayerNorm : impl::RecomposeLayerNormBase<RecomposeLayerNorm>, PassReport {
  void runOnOperation() override {
    count("recomposed", 0);
    SmallVector<ds::BinaryOp> ops;
    getOperation().walk([&](ds::BinaryOp op) { ops.push_back(op); });
    for (ds::BinaryOp op : ops)
      if (auto chain = matchFolded(op))
        replace(op, *chain);
    for (ds::BinaryOp op : ops)
      for (const RootQuotient &quotient : rootQuotients(op))
        if (auto chain = matchChain(op, quotient)) {
          rewrite(op, *chain);
          break;
        }
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
  }

  /// Takes in the scale and the bias that follow.
  void rewrite(ds::BinaryOp normalized, Chain chain) {
    auto type = cast<RankedTensorType>(chain.input.getType());
    ArrayRef<int64_t> shape = type.getShape().drop_front(chain.axis);
    ds::BinaryOp last = normalized;
    Value parameter;
    ds::BinaryOp scaled = onlyUser(last.getResult(), ds::BinaryKind::mul, parameter);
    if (scaled && isParameter(parameter, shape)) {
      last = scaled;
      chain.scale = parameter;
      ds::BinaryOp biased = onlyUser(last.getResult(), ds::BinaryKind::add, parameter);
      if (biased && isParameter(parameter, shape)) {
        last = biased;
        chain.bias = parameter;
      }
    }
    replace(last, chain);
  }

  /// At the last op of the chain: its parameters may be defined after the norm began.
  void replace(ds::BinaryOp last, Chain chain) {
    OpBuilder builder(last);
    auto type = cast<RankedTensorType>(chain.input.getType());
    ArrayRef<int64_t> shape = type.getShape().drop_front(chain.axis);
    chain.scale = chain.scale ? parameterOf(builder, chain.scale, shape)
                              : createOnes(builder, last.getLoc(), shape, type.getElementType());
    if (chain.bias)
      chain.bias = parameterOf(builder, chain.bias, shape);
    auto norm = ds::LayerNormOp::create(builder, last.getLoc(), chain.input.getType(), chain.input, chain.scale,
                                        chain.bias, chain.axis, llvm::APFloat(chain.epsilon));
    keepNames(last, norm);
    last.getResult().replaceAllUsesWith(norm.getResult());
    count("recomposed");
  }
};
} // namespace

} // namespace deepstride
