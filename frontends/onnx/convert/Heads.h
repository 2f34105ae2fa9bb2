// What the attention operators of all domains share: heads as an axis of their own.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_HEADS_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_HEADS_H

#include "frontends/onnx/convert/Node.h"

namespace deepstride::onnx {

/// [batch, length, heads * size] as [batch, heads, length, size].
mlir::Value splitHeads(Node &n, mlir::Value x, int64_t heads);

/// [batch, heads, length, size] as [batch, length, heads * size].
mlir::Value mergeHeads(Node &n, mlir::Value x);

/// Each head of a key or value [batch, heads, length, size] `repeats` times, one after the other.
mlir::Value repeatHeads(Node &n, mlir::Value x, int64_t repeats);

/// The first `rotated` elements (an even number) of the last axis of x [batch, heads, length, size], turned in pairs by
/// angles whose cosines and sines broadcast to [batch, heads, length, rotated / 2]: element i with element i + rotated
/// / 2, or with its neighbour where the pairs are interleaved. The others stay.
mlir::Value rotateHeads(Node &n, mlir::Value x, mlir::Value cosine, mlir::Value sine, int64_t rotated,
                        bool isInterleaved);

/// The least finite number of a float type: what the conversions add where a place is never attended to.
double lowestOf(mlir::Type type);

/// What stands between the products of an attention.
struct Scoring {
  double scale = 1;
  llvm::SmallVector<ds::ScoreStep> steps; // what masks the scores, in order
  ds::ScoreWindow window;                 // of the steps by it
  double softcap = 0;                     // where positive: softcap * tanh(score / softcap), before the steps
  bool hasSink = false; // one more term in each sum of the softmax: exp of `sink`, or of 0 where that is null
  mlir::Value sink;     // [heads]
  bool yieldsScores = false;
};

struct Attended {
  mlir::Value result, scores, weights; // the latter two only where `yieldsScores` says so
};

/// softmax(steps(scale * query * key^T)) * value: a ds.attention where nothing else is asked for. Keys and values may
/// have fewer heads: each serves as many neighbouring heads of the query.
Attended attend(Node &n, mlir::Value query, mlir::Value key, mlir::Value value, const Scoring &scoring);

} // namespace deepstride::onnx

#endif
