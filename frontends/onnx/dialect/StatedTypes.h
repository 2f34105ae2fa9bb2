// Models state types of values, and operators have types by what they compute: both must agree.
#ifndef FRONTENDS_ONNX_DIALECT_STATEDTYPES_H
#define FRONTENDS_ONNX_DIALECT_STATEDTYPES_H

#include "mlir/IR/Types.h"

#include <string>

namespace deepstride::onnx {

/// Whether no tensor can have both types: they differ in element type, in rank or in a size that both know.
bool contradict(mlir::Type stated, mlir::Type found);

/// `f32[2, ?]`; other types as MLIR writes them.
std::string describeTensor(mlir::Type type);

} // namespace deepstride::onnx

#endif
