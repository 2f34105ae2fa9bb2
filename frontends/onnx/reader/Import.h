// The entry to the importer: an ONNX file becomes a module in the `onnx` dialect.

#ifndef FRONTENDS_ONNX_READER_IMPORT_H
#define FRONTENDS_ONNX_READER_IMPORT_H

#include "frontends/onnx/reader/Limits.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace deepstride::onnx {

/// Reads the model at `path` into `func.func @main` of a new module; weights stay in their files.
/// What is wrong with the file is reported as a diagnostic of `context`, located at the file or
/// inside of it at the name of the node or value. `externalFiles`, if given, gets every other file that was opened, as
/// the model names it.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(const std::string &path, mlir::MLIRContext &context,
                                                              const ImportLimits &limits = {},
                                                              std::vector<std::string> *externalFiles = nullptr);

/// A location made by importOnnx as a reader of messages wants it: `model.onnx: 'fc1'`.
std::string describeLocation(mlir::Location location);

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_IMPORT_H
