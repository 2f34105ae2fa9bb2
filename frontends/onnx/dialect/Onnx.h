// The importer's private dialect: `onnx.node`, `onnx.initializer` and what they need. Onnx.td is
// the reference of the ops; beside what TableGen made of it there are the names of attributes.

#ifndef FRONTENDS_ONNX_DIALECT_ONNX_H
#define FRONTENDS_ONNX_DIALECT_ONNX_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "frontends/onnx/dialect/OnnxDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "frontends/onnx/dialect/OnnxTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "frontends/onnx/dialect/OnnxAttributes.h.inc"

#define GET_OP_CLASSES
#include "frontends/onnx/dialect/OnnxOps.h.inc"

namespace deepstride::onnx {
/// Attributes of the arguments and results of `@main`.
constexpr llvm::StringLiteral sourceName = "onnx.name", sourceDims = "onnx.dims";
} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_DIALECT_ONNX_H
