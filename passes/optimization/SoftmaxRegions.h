// Attention in parts: a softmax between two products, which quantized models leave, since they quantize its scores and
// its weights.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_SOFTMAXREGIONS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_SOFTMAXREGIONS_H

#include "dialects/ds/SoftmaxProducts.h"
#include "passes/optimization/Regions.h"

namespace deepstride {

/// The products of attention whose scores are sums of integers, seen through the elementwise ops between them; none
/// where the softmax stands elsewhere.
std::optional<ds::SoftmaxProducts> productsAround(ds::SoftmaxOp softmax);

/// The products, and the elementwise ops right before their operands, which read windows of what is in memory.
llvm::SmallVector<mlir::Operation *> stepsBefore(ds::SoftmaxProducts products);

/// Gathers the region of such an attention, and its last op: both products and what is computed between them, the
/// elementwise ops and windows before their operands, and those behind the result. Empty where a kernel cannot compute
/// it; a remark says why.
std::pair<OpSet, mlir::Operation *> softmaxRegion(ds::SoftmaxProducts products, SizeAnalysis &analysis);

} // namespace deepstride

#endif
