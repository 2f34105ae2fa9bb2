// The kernel of attention in parts, whose scores and weights are quantized on the way.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_QUANTIZEDATTENTION_H
#define DEEPSTRIDE_CODEGEN_LOWER_QUANTIZEDATTENTION_H

#include "codegen/lower/KernelBuilder.h"
#include "dialects/ds/SoftmaxProducts.h"

namespace deepstride {

/// Both products, the softmax, and all elementwise and window ops around them, which are the kernel's.
llvm::LogicalResult lowerQuantizedAttention(KernelBuilder &builder, ds::SoftmaxProducts ops);

} // namespace deepstride

#endif
