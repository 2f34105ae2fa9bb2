// Losses of classification, which training graphs carry.
#include "frontends/onnx/convert/Registry.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::ReduceKind;

/// The negative logarithms of the target classes, weighted by class; ignored targets weigh nothing.
static Value negativeLogLikelihood(Node &n, Value logarithms, Value target, Value classWeights) {
  DsBuilder &b = n.b;
  std::string reduction = n.text("reduction", "mean", {"none", "mean", "sum"});
  Type type = b.element(logarithms);
  if (b.rank(logarithms) < 2 || b.rank(target) != b.rank(logarithms) - 1)
    return n.refuse("expected scores [N, C, ...] and targets [N, ...], found " + describe(b.facts(logarithms)) +
                    " and " + describe(b.facts(target)));
  Value weights, safeTarget = target;
  if (n.attribute("ignore_index")) {
    // In 64 bits: the number may be one that neither a narrower target nor a double holds.
    Value ignored = b.reshape(b.integers({n.integer("ignore_index", 0)}), {});
    Value isIgnored = b.binary(BinaryKind::eq, b.cast(target, b.i64()), ignored);
    safeTarget = b.select(isIgnored, b.scalar(b.element(target), 0), target); // any legal class will do
    weights = b.select(isIgnored, b.scalar(type, 0), b.scalar(type, 1));
  }
  if (classWeights) {
    Value own = b.gather(0, classWeights, safeTarget);
    weights = weights ? b.mul(own, weights) : own;
  }
  Value place = b.insertAxis(safeTarget, 1);
  Value chosen = b.create<ds::GatherElementsOp>({logarithms, place}, int64_t(1), logarithms, place);
  if (!chosen)
    return {};
  Value losses = b.unary(ds::UnaryKind::neg, b.dropAxis(chosen, 1));
  if (weights)
    losses = b.mul(losses, weights);
  SmallVector<int64_t> all = axesFrom(0, b.rank(target));
  if (reduction == "none" || !losses)
    return losses;
  if (reduction == "mean" && !weights)
    return b.reduce(ReduceKind::mean, losses, all, /*keep=*/false);
  Value sum = b.reduce(ReduceKind::sum, losses, all, /*keep=*/false);
  return reduction == "sum" ? sum : b.div(sum, b.reduce(ReduceKind::sum, weights, all, /*keep=*/false));
}

static Values convertNegativeLogLikelihood(Node &n) { return {negativeLogLikelihood(n, n.in(0), n.in(1), n.in(2))}; }

static Values convertSoftmaxCrossEntropy(Node &n) {
  if (!n.requireRank(0, 2))
    return {};
  Value logarithms = n.b.softmax(n.in(0), 1, /*log=*/true);
  return {logarithms ? negativeLogLikelihood(n, logarithms, n.in(1), n.in(2)) : Value(), logarithms};
}

void addLosses(PatternRegistry &registry) {
  registry.add("NegativeLogLikelihoodLoss", 12, 2, convertNegativeLogLikelihood).inFloat32 = true;
  registry.add("SoftmaxCrossEntropyLoss", 12, 2, convertSoftmaxCrossEntropy).inFloat32 = true;
}

} // namespace deepstride::onnx
