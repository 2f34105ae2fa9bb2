// Builds losses from ds ops, all of which have rules.
#include "passes/training/Loss.h"

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::ReduceKind;

Loss crossEntropy(DsBuilder &b, Value logits, Value labels, int64_t ignored, bool isShifted) {
  SizeVector sizes = b.sizes(logits);
  int64_t rank = static_cast<int64_t>(sizes.size());
  if (isShifted) { // the last token predicts nothing, the first one is predicted by nothing
    SizeExpr count = sizes[rank - 2] - SizeExpr(1);
    logits = b.sliceAxis(logits, rank - 2, 0, count);
    labels = b.sliceAxis(labels, rank - 2, 1, count);
    sizes = b.sizes(logits);
  }
  SizeExpr rows = product(ArrayRef(sizes).drop_back());
  Value scores = b.reshape(logits, {rows, sizes.back()}), targets = b.reshape(labels, {rows});
  if (b.element(scores) && b.element(scores).getIntOrFloatBitWidth() < 32)
    scores = b.cast(scores, b.f32());
  Type type = b.element(scores);
  Value isIgnored = b.binary(BinaryKind::eq, targets, static_cast<double>(ignored));
  Value safe = b.select(isIgnored, b.scalar(b.i64(), 0), targets); // any legal class will do
  Value logarithms = b.softmax(scores, 1, /*log=*/true), place = b.insertAxis(safe, 1);
  Value chosen = b.create<ds::GatherElementsOp>({logarithms, place}, int64_t(1), logarithms, place);
  if (!chosen)
    return {};
  // Ignored rows are chosen away, not multiplied by 0: infinities and NaN would stay.
  Value losses = b.select(isIgnored, b.scalar(type, 0), b.unary(ds::UnaryKind::neg, b.dropAxis(chosen, 1)));
  Value counts = b.select(isIgnored, b.scalar(b.i64(), 0), b.scalar(b.i64(), 1));
  Value counted = b.reduce(ReduceKind::sum, counts, {0}, /*keep=*/false);
  Value sum = b.reduce(ReduceKind::sum, losses, {0}, /*keep=*/false);
  Value best = b.argReduce(ReduceKind::max, scores, 1, /*keep=*/false, /*last=*/false);
  Value hits = b.select(b.binary(BinaryKind::eq, best, targets), counts, b.scalar(b.i64(), 0));
  return {b.div(sum, b.cast(counted, type)), counted, b.reduce(ReduceKind::sum, hits, {0}, /*keep=*/false)};
}

Loss meanSquaredError(DsBuilder &b, Value values, Value labels) {
  if (b.element(values) && b.element(values) != b.element(labels))
    labels = b.cast(labels, b.element(values));
  Value difference = b.sub(values, labels);
  return {b.reduce(ReduceKind::mean, b.mul(difference, difference), axesFrom(0, b.rank(difference)), /*keep=*/false),
          {}};
}

} // namespace deepstride
