// The conversion of an imported ONNX model to the ds dialect, as a function and as a pass.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_PASSES_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_PASSES_H

#include "dialects/ds/SameDimensions.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

namespace deepstride::onnx {

struct ConversionOptions {
  /// Values of named dimensions; the others stay symbols.
  llvm::StringMap<int64_t> dims;
  /// Dimensions that are one.
  SameDimensions same;
  /// Shapes of inputs by name: per axis a size, or the name of a dynamic dimension.
  llvm::StringMap<std::vector<std::string>> shapes;
  /// Whether floats of more than one element, and single ones that a layer learns, are weights: training updates them.
  bool storesFloats = false;
  /// For tests: the n-th op that a pattern creates is refused, as if its shape rules did; 0 refuses none. Whatever a
  /// model contains, a conversion must end well after that.
  unsigned refusedOp = 0;
};

/// Everything that stands in the way is reported as diagnostics of the context before it fails.
llvm::LogicalResult convertOnnxToDs(mlir::ModuleOp module, const ConversionOptions &options = {});

/// Gives dynamic dimensions of inputs that have no name the one that the conversion gives them.
void nameInputDimensions(mlir::ModuleOp module);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "frontends/onnx/convert/Passes.h.inc"

} // namespace deepstride::onnx

#endif
