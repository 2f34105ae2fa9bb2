// Losses that training adds to a model, and what an evaluation counts.
#ifndef DEEPSTRIDE_PASSES_TRAINING_LOSS_H
#define DEEPSTRIDE_PASSES_TRAINING_LOSS_H

#include "dialects/ds/DsBuilder.h"

namespace deepstride {

/// Numbers without axes. Null where a shape rule has refused and said why.
struct Loss {
  mlir::Value mean;         // over what is counted
  mlir::Value counted;      // i64: how many labels that is; null for mse
  mlir::Value correct = {}; // i64: of how many the greatest logit is the label; null for mse
};

/// The mean of -log softmax(logits)[label] over labels other than `ignored`. Logits are [..., classes], labels [...] of
/// i64 in [0, classes) or `ignored`. With `isShifted`, logits at place i of the last axis but one are compared with the
/// label at i + 1, as language models are trained; the last place has none. A mean over no label is 0.
Loss crossEntropy(DsBuilder &b, mlir::Value logits, mlir::Value labels, int64_t ignored, bool isShifted);

/// The mean of (values - labels)^2 over all elements, which have the same sizes.
Loss meanSquaredError(DsBuilder &b, mlir::Value values, mlir::Value labels);

} // namespace deepstride

#endif
