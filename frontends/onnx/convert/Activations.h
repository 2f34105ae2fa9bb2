// Activations that several families of operators have.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_ACTIVATIONS_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_ACTIVATIONS_H

#include "dialects/ds/DsBuilder.h"

namespace deepstride::onnx {

/// x where it is at least 0, else alpha (e^(x / scale) - 1).
mlir::Value elu(DsBuilder &b, mlir::Value x, double alpha, double scale = 1);
/// log(1 + e^x).
mlir::Value softplus(DsBuilder &b, mlir::Value x);

} // namespace deepstride::onnx

#endif
