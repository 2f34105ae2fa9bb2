// ONNX types as MLIR types.

#ifndef FRONTENDS_ONNX_READER_TYPES_H
#define FRONTENDS_ONNX_READER_TYPES_H

#include "frontends/onnx/reader/ModelFile.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace deepstride::onnx {

mlir::Type importElementType(const ElementKind &element, mlir::MLIRContext *context);

/// Whether a file states the size of a dimension. Some say -1 for one that is not known.
bool isStated(const ::onnx::TensorShapeProto::Dimension &dim);

/// Tensors become ranked or, without a shape, unranked tensors; sequences and the like
/// `!onnx.other`; a type that is not stated `!onnx.unknown`.
llvm::Expected<mlir::Type> importType(const ::onnx::TypeProto &type, mlir::MLIRContext *context,
                                      const ImportLimits &limits);

/// The elements of a tensor as `dense<>`, or `#onnx.range` where they stayed in a file.
llvm::Expected<mlir::TypedAttr> importTensor(const ::onnx::TensorProto &tensor, ModelFile &file,
                                             mlir::MLIRContext *context);

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_TYPES_H
