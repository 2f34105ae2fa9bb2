// Builds losses from ds ops, all of which have rules.
#include "passes/training/Loss.h"

#include <limits>

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::ReduceKind;

/// [rows]: the logit of the class that `targets` names, of [rows, classes]. Where the number of classes is known, a
/// label that is none gives NaN, which whoever checks labels beforehand never sees; its gradient is one pass over the
/// logits.
static Value chosenLogit(DsBuilder &b, Value scores, Value targets, Value isIgnored) {
  Type type = b.element(scores);
  SizeVector sizes = b.sizes(scores);
  auto classes = sizes.back().constant();
  if (!classes) {
    Value safe = b.select(isIgnored, b.scalar(b.i64(), 0), targets), place = b.insertAxis(safe, 1);
    return b.dropAxis(b.create<ds::GatherElementsOp>({scores, place}, int64_t(1), scores, place), 1);
  }
  Value column = b.iota(1, {SizeExpr(1), sizes.back()});
  Value isChosen = b.binary(BinaryKind::eq, b.insertAxis(targets, 1), column);
  Value chosen = b.reduce(ReduceKind::sum, b.select(isChosen, scores, b.scalar(type, 0)), {1}, /*keep=*/false);
  Value isClass = b.binary(BinaryKind::bit_and, b.binary(BinaryKind::ge, targets, 0.0),
                           b.binary(BinaryKind::lt, targets, static_cast<double>(*classes)));
  return b.select(isClass, chosen, b.scalar(type, std::numeric_limits<double>::quiet_NaN()));
}

Loss crossEntropy(DsBuilder &b, Value logits, Value labels, int64_t ignored, bool isShifted) {
  SizeVector sizes = b.sizes(logits);
  int64_t rank = static_cast<int64_t>(sizes.size());
  if (isShifted) { // the last token predicts nothing, the first one is predicted by nothing
    SizeVector one = b.sizes(labels);
    one.back() = 1;
    Value next = b.sliceAxis(labels, rank - 2, 1, sizes[rank - 2] - SizeExpr(1));
    Value none = b.broadcast(b.scalar(b.i64(), static_cast<double>(ignored)), one);
    labels = b.concat(rank - 2, {next, none});
  }
  SizeExpr rows = product(ArrayRef(sizes).drop_back());
  Value scores = b.reshape(logits, {rows, sizes.back()}), targets = b.reshape(labels, {rows});
  if (b.element(scores) && b.element(scores).getIntOrFloatBitWidth() < 32)
    scores = b.cast(scores, b.f32());
  Type type = b.element(scores);
  Value isIgnored = b.binary(BinaryKind::eq, targets, static_cast<double>(ignored));
  Value whole = b.reduce(ReduceKind::log_sum_exp, scores, {1}, /*keep=*/false);
  Value loss = b.sub(whole, chosenLogit(b, scores, targets, isIgnored));
  // Ignored rows are chosen away, not multiplied by 0: infinities and NaN would stay.
  Value losses = b.select(isIgnored, b.scalar(type, 0), loss);
  Value counts = b.select(isIgnored, b.scalar(b.i64(), 0), b.scalar(b.i64(), 1));
  Value counted = b.reduce(ReduceKind::sum, counts, {0}, /*keep=*/false);
  Value sum = b.reduce(ReduceKind::sum, losses, {0}, /*keep=*/false);
  Value best = b.argReduce(ReduceKind::max, scores, 1, /*keep=*/false, /*last=*/false);
  Value hits = b.select(b.binary(BinaryKind::eq, best, targets), counts, b.scalar(b.i64(), 0));
  Value some = b.cast(b.binary(BinaryKind::max, counted, 1.0), type); // of none, the mean is 0
  return {b.div(sum, some), counted, b.reduce(ReduceKind::sum, hits, {0}, /*keep=*/false)};
}

Loss meanSquaredError(DsBuilder &b, Value values, Value labels) {
  if (b.element(values) && b.element(values) != b.element(labels))
    labels = b.cast(labels, b.element(values));
  Value difference = b.sub(values, labels);
  return {b.reduce(ReduceKind::mean, b.mul(difference, difference), axesFrom(0, b.rank(difference)), /*keep=*/false),
          {}};
}

} // namespace deepstride
