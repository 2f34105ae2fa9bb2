// Losses of classification, which training graphs carry.
#include "frontends/onnx/convert/Registry.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::ReduceKind;

/// Which targets weigh nothing, i1; none without `ignore_index`.
static Value ignoredTargets(Node &n, Value target) {
  if (!n.attribute("ignore_index"))
    return {};
  // In 64 bits: the number may be one that neither a narrower target nor a double holds.
  Value ignored = n.b.reshape(n.b.integers({n.integer("ignore_index", 0)}), {});
  return n.b.binary(BinaryKind::eq, n.b.cast(target, n.b.i64()), ignored);
}

static bool checkLoss(Node &n) {
  int64_t rank = n.b.rank(n.in(0));
  return (rank >= 2 && n.b.rank(n.in(1)) == rank - 1) ||
         n.reject("expected scores [N, C, ...] and targets [N, ...], found " + describe(n.b.facts(n.in(0))) + " and " +
                  describe(n.b.facts(n.in(1))));
}

/// The negative logarithms of the target classes, weighted by class. What is ignored is 0 by choice: times 0,
/// infinities and NaN would stay.
static Value negativeLogLikelihood(Node &n, Value logarithms, Value target, Value classWeights, Value isIgnored) {
  DsBuilder &b = n.b;
  std::string reduction = n.text("reduction", "mean", {"none", "mean", "sum"});
  Type type = b.element(logarithms);
  auto unlessIgnored = [&](Value x) { return isIgnored && x ? b.select(isIgnored, b.scalar(b.element(x), 0), x) : x; };
  Value safeTarget = unlessIgnored(target); // any legal class will do
  Value weights = classWeights ? unlessIgnored(b.gather(0, classWeights, safeTarget)) : Value();
  if (isIgnored && !classWeights)
    weights = unlessIgnored(b.scalar(type, 1));
  Value place = b.insertAxis(safeTarget, 1);
  Value chosen = b.create<ds::GatherElementsOp>({logarithms, place}, int64_t(1), logarithms, place);
  if (!chosen)
    return {};
  Value losses = unlessIgnored(b.unary(ds::UnaryKind::neg, b.dropAxis(chosen, 1)));
  if (classWeights)
    losses = b.mul(losses, weights);
  SmallVector<int64_t> all = axesFrom(0, b.rank(target));
  if (reduction == "none" || !losses)
    return losses;
  if (reduction == "mean" && !weights)
    return b.reduce(ReduceKind::mean, losses, all, /*keep=*/false);
  Value sum = b.reduce(ReduceKind::sum, losses, all, /*keep=*/false);
  return reduction == "sum" ? sum : b.div(sum, b.reduce(ReduceKind::sum, weights, all, /*keep=*/false));
}

static Values convertNegativeLogLikelihood(Node &n) {
  if (!checkLoss(n))
    return {};
  return {negativeLogLikelihood(n, n.in(0), n.in(1), n.in(2), ignoredTargets(n, n.in(1)))};
}

static Values convertSoftmaxCrossEntropy(Node &n) {
  if (!checkLoss(n))
    return {};
  Value scores = n.in(0), isIgnored = ignoredTargets(n, n.in(1)), counted = scores;
  // The gradient of a softmax of NaN is NaN even where none is asked for: ignored scores are chosen away before.
  if (isIgnored)
    counted = n.b.select(n.b.insertAxis(isIgnored, 1), n.b.scalar(n.b.element(scores), 0), scores);
  Value logarithms = n.b.softmax(counted, 1, /*log=*/true);
  Value loss = logarithms ? negativeLogLikelihood(n, logarithms, n.in(1), n.in(2), isIgnored) : Value();
  return {loss, n.yields(1) ? n.b.softmax(scores, 1, /*log=*/true) : Value()};
}

void addLosses(PatternRegistry &registry) {
  registry.add("NegativeLogLikelihoodLoss", 12, 2, convertNegativeLogLikelihood).inFloat32 = true;
  registry.add("SoftmaxCrossEntropyLoss", 12, 2, convertSoftmaxCrossEntropy).inFloat32 = true;
}

} // namespace deepstride::onnx
