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
  Value scale, bias; // where the chain holds them
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

/// TensorFlow's batch_normalization over features: x * i + (bias - mean * i) with i = scale / deviation.
static std::optional<Chain> matchFolded(ds::BinaryOp op) {
  if (op.getKind() != ds::BinaryKind::add)
    return std::nullopt;
  for (auto [scaled, offset] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    ds::BinaryOp product = binaryOf(scaled, ds::BinaryKind::mul), rest = binaryOf(offset, ds::BinaryKind::sub);
    ds::BinaryOp shift = rest ? binaryOf(rest.getRhs(), ds::BinaryKind::mul) : ds::BinaryOp();
    if (!product || !shift)
      continue;
    for (unsigned i : {0, 1}) {
      Value x = product->getOperand(i), inverse = product->getOperand(1 - i);
      if (shift.getLhs() != inverse && shift.getRhs() != inverse)
        continue;
      ds::ReduceOp mean = meanOf(shift.getLhs() == inverse ? shift.getRhs() : shift.getLhs());
      auto quotients = inverse.getDefiningOp<ds::BinaryOp>() ? rootQuotients(inverse.getDefiningOp<ds::BinaryOp>())
                                                             : SmallVector<RootQuotient, 2>();
      if (!mean || mean.getInput() != x || quotients.empty())
        continue;
      auto remark = [&](const Twine &reason) {
        remarkLeft(op, "layer norm", reason);
        return std::nullopt;
      };
      auto epsilon = matchScalar(quotients[0].radicand, ds::BinaryKind::add);
      ds::ReduceOp variance = epsilon ? meanOf(epsilon->tensor) : ds::ReduceOp();
      Value squared = variance ? matchSquare(variance.getInput()) : Value();
      ds::BinaryOp centred = squared ? binaryOf(squared, ds::BinaryKind::sub) : ds::BinaryOp();
      if (!centred || centred.getLhs() != x || centred.getRhs() != mean.getResult() ||
          variance.getAxes() != mean.getAxes())
        return remark("the variance is not that of the centred value");
      auto type = cast<RankedTensorType>(x.getType());
      if (!areLastAxes(mean.getAxes(), type.getRank()))
        return remark("the axes are not the last ones");
      ArrayRef<int64_t> shape = type.getShape().drop_front(mean.getAxes().front());
      Value scale = quotients[0].numerator, bias = rest.getLhs();
      if (!hasShape(scale, shape) || !hasShape(bias, shape) || type != op.getType())
        return remark("scale and bias do not have the shape of the normalized axes");
      return Chain{x, mean.getAxes().front(), epsilon->scalar, scale, bias};
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
    eraseDeadOps(getOperation());
  }

  /// Takes in the scale and the bias that follow.
  void rewrite(ds::BinaryOp normalized, Chain chain) {
    auto type = cast<RankedTensorType>(chain.input.getType());
    ArrayRef<int64_t> shape = type.getShape().drop_front(chain.axis);
    ds::BinaryOp last = normalized;
    Value parameter;
    ds::BinaryOp scaled = onlyUser(last.getResult(), ds::BinaryKind::mul, parameter);
    if (scaled && hasShape(parameter, shape)) {
      last = scaled;
      chain.scale = parameter;
      ds::BinaryOp biased = onlyUser(last.getResult(), ds::BinaryKind::add, parameter);
      if (biased && hasShape(parameter, shape)) {
        last = biased;
        chain.bias = parameter;
      }
    }
    if (!chain.scale) {
      OpBuilder builder(last);
      chain.scale = createOnes(builder, last.getLoc(), shape, type.getElementType());
    }
    replace(last, chain);
  }

  /// At the last op of the chain: its parameters may be defined after the norm began.
  void replace(ds::BinaryOp last, const Chain &chain) {
    OpBuilder builder(last);
    auto norm = ds::LayerNormOp::create(builder, last.getLoc(), chain.input.getType(), chain.input, chain.scale,
                                        chain.bias, chain.axis, llvm::APFloat(chain.epsilon));
    keepNames(last, norm);
    last.getResult().replaceAllUsesWith(norm.getResult());
    count("recomposed");
  }
};
} // namespace

} // namespace deepstride
