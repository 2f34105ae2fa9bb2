// Random numbers for patterns: a counter-based generator written in integer ops, so that kernels need no state and
// results do not depend on threads. A package is a pure function: each call draws the same numbers. The stream is
// chosen by the node's 'seed', or by the name of its output where there is none.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_RANDOM_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_RANDOM_H

#include "frontends/onnx/convert/Node.h"

namespace deepstride::onnx {

/// Independent numbers, uniform in [0, 1), of f32 or f64. `draw` tells several tensors of one node apart.
mlir::Value uniformNumbers(Node &n, const SizeVector &sizes, mlir::Type type, uint64_t draw = 0);

} // namespace deepstride::onnx

#endif
