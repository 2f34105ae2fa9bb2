// Registers what ds-opt knows. Both uses of the tool share the dialects; passes by name are for its use as an mlir-opt.
#include "tools/ds-opt/Registration.h"

#include "codegen/Passes.h"
#include "codegen/Pipeline.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/ds/DsDialect.h"
#include "dialects/train/TrainDialect.h"
#include "frontends/onnx/convert/Passes.h"
#include "frontends/onnx/dialect/Onnx.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "passes/Passes.h"

namespace deepstride {

void registerDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<ds::DSDialect, dist::DistDialect, train::TrainDialect, ::deepstride::onnx::OnnxDialect>();
}

void registerAllPassesAndPipelines() {
  static bool isDone = false;
  if (std::exchange(isDone, true))
    return;
  mlir::registerAllPasses();
  onnx::registerOnnxConvertPasses();
  registerAllDeepstridePasses();
  registerCodegenPasses();
  registerCodegenPipeline();
}

} // namespace deepstride
