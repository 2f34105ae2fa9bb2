// Derivatives of softmax and of the norms of transformer layers, from what their results say of the operands.
#include "passes/training/Derivative.h"

using namespace mlir;

namespace deepstride {
using ds::UnaryKind;

/// y (g - sum g y), and for logarithms g - exp(y) sum g.
static void differentiateSoftmax(ds::SoftmaxOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.wide(d.gradient()), y = d.wide(d.out());
  int64_t axis = op.getAxis();
  if (op.getLog())
    return d.give(0, b.sub(g, b.mul(b.unary(UnaryKind::exp, y), d.sum(g, axis))));
  d.give(0, b.mul(y, b.sub(g, d.sum(b.mul(g, y), axis))));
}

/// With n the normalized operand, s the factor that normalized it and h = g scale: s (h - mean h - n mean(h n)); the
/// mean of h only where the operand's mean was taken off.
static void differentiateNorm(Value n, Value factor, ArrayRef<int64_t> axes, bool isCentred, Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.wide(d.gradient());
  if (d.wants(0)) {
    Value h = b.mul(g, d.wide(d.in(1)));
    Value along = b.sub(h, b.mul(n, d.mean(b.mul(h, n), axes)));
    d.give(0, b.mul(factor, isCentred ? b.sub(along, d.mean(h, axes)) : along));
  }
  if (d.wants(1))
    d.give(1, b.mul(g, n));
}

static Value inverseRoot(Value variance, const APFloat &epsilon, DsBuilder &b) {
  return b.unary(UnaryKind::reciprocal, b.unary(UnaryKind::sqrt, b.add(variance, epsilon.convertToDouble())));
}

static void differentiateLayerNorm(ds::LayerNormOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value x = d.wide(d.in());
  SmallVector<int64_t> axes = axesFrom(op.getAxis(), b.rank(x));
  Value centred = b.sub(x, d.mean(x, axes));
  Value factor = inverseRoot(d.mean(b.mul(centred, centred), axes), op.getEpsilon(), b);
  differentiateNorm(b.mul(centred, factor), factor, axes, /*isCentred=*/true, d);
  if (op.getBias())
    d.give(2, d.wide(d.gradient()));
}

static void differentiateRmsNorm(ds::RmsNormOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value x = d.wide(d.in());
  SmallVector<int64_t> axes = axesFrom(op.getAxis(), b.rank(x));
  Value factor = inverseRoot(d.mean(b.mul(x, x), axes), op.getEpsilon(), b);
  differentiateNorm(b.mul(x, factor), factor, axes, /*isCentred=*/false, d);
}

void addNormalizationRules(RuleTable &table) {
  table.add(differentiateSoftmax);
  table.add(differentiateLayerNorm);
  table.add(differentiateRmsNorm);
}

} // namespace deepstride
