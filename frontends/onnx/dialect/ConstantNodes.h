// Constant nodes hold tensors in several attributes: what they have in common is the tensor.
#ifndef FRONTENDS_ONNX_DIALECT_CONSTANTNODES_H
#define FRONTENDS_ONNX_DIALECT_CONSTANTNODES_H

#include "mlir/IR/BuiltinAttributeInterfaces.h"

namespace deepstride::onnx {

/// What `value`, `value_float`, `value_floats`, `value_int` or `value_ints` of a Constant holds; null for another
/// attribute, or where it has no such value.
mlir::TypedAttr heldTensor(mlir::NamedAttribute attribute);

} // namespace deepstride::onnx

#endif
