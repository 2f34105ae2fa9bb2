// importOnnx: load the file, import its graph, verify the result.

#include "frontends/onnx/reader/Import.h"

#include "frontends/onnx/reader/GraphImporter.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace deepstride::onnx {

FailureOr<OwningOpRef<ModuleOp>> importOnnx(const std::string &path, MLIRContext &context, const ImportLimits &limits,
                                            std::vector<std::string> *externalFiles) {
  context.loadDialect<OnnxDialect, func::FuncDialect>();
  Location location = FileLineColLoc::get(&context, path, 0, 0);
  llvm::Expected<std::unique_ptr<ModelFile>> file = ModelFile::load(path, limits);
  if (!file) {
    emitError(location) << llvm::toString(file.takeError());
    return failure();
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  if (failed(GraphImporter(path, **file, &context, limits).importModel(*module)) || failed(verify(*module)))
    return failure();
  if (externalFiles)
    *externalFiles = (*file)->externalFiles();
  return module;
}

std::string describeLocation(Location location) {
  if (auto position = dyn_cast<FileLineColLoc>(location))
    return position.getFilename().str();
  if (auto name = dyn_cast<NameLoc>(location))
    return describeLocation(name.getChildLoc()) + ": " + quoted(name.getName());
  std::string text;
  llvm::raw_string_ostream(text) << location;
  return text;
}

} // namespace deepstride::onnx
