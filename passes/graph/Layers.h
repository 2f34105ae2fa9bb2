// What tells a transformer layer: attention and its features, norms, activations. Read off the structure of recomposed
// ops, for the report; nothing is rewritten.
#ifndef DEEPSTRIDE_PASSES_GRAPH_LAYERS_H
#define DEEPSTRIDE_PASSES_GRAPH_LAYERS_H

#include "passes/graph/Matching.h"

namespace deepstride {

/// Whether query and key of an attention come from one value; cross attention reads another one.
bool isSelfAttention(ds::AttentionOp op);

/// "grouped 4:2, causal, rope": what distinguishes an attention from plain softmax(Q K^T) V. May be empty.
std::string describeAttention(ds::AttentionOp op);

/// The norms of query and key, between projection and scores.
llvm::SmallVector<mlir::Operation *> findHeadNorms(ds::AttentionOp op);

/// "swiglu", "geglu", "silu", "gelu tanh", "relu"; empty where the op is not the last of an activation.
std::string describeActivation(mlir::Operation *op);

} // namespace deepstride

#endif
