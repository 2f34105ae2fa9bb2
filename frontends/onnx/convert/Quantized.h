// Arithmetic that the quantized operators of all domains share.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_QUANTIZED_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_QUANTIZED_H

#include "frontends/onnx/convert/Node.h"

namespace deepstride::onnx {

struct QuantizedTensor {
  mlir::Value value, scale, zero;
};

/// round(x) + zero, limited to what the type holds; `zero` may be null.
mlir::Value saturate(Node &n, mlir::Value x, mlir::Value zero, mlir::Type type);

/// The type of the zero point, else what the node says, else u8; null after a diagnostic.
mlir::Type quantizedType(Node &n, mlir::Value zero);

/// To u8, over the range of the tensor's own elements and 0 (DynamicQuantizeLinear).
QuantizedTensor quantizeDynamically(Node &n, mlir::Value x);

/// An integer operand as i32 with its zero point taken off; `axis` is that of a zero point with several elements.
mlir::Value centre(Node &n, unsigned input, unsigned zeroInput, int64_t axis);

/// The same with one zero point for the whole tensor.
mlir::Value centreByOne(Node &n, unsigned input, unsigned zeroInput);

/// One number for the whole tensor, from an operand that holds one; null after a diagnostic.
mlir::Value single(Node &n, unsigned input);

/// A scale that may be one per row or column, fitted to the product.
mlir::Value productScale(Node &n, unsigned input, mlir::Value product, int64_t axis);

} // namespace deepstride::onnx

#endif
