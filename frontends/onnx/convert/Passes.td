// The pass that ends the import.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_PASSES_TD
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertOnnxToDs : Pass<"convert-onnx-to-ds", "::mlir::ModuleOp"> {
  let summary = "turns onnx.node into ds ops with symbolic sizes";
  let description = [{
    Converts `@main` node by node with the pattern of the node's operator and opset. Dimension names of the inputs
    become size symbols, or the values that the option pins them to. Small initializers become `ds.constant`, larger
    ones `ds.weight` of a `ds.recipe`. Everything that has no conversion is listed in one report.
  }];
  let options = [
    ListOption<"dims", "dim", "std::string",
               "value of a named dimension, as NAME=VALUE, or two dimensions that are one, as NAME=NAME">,
    ListOption<"shapes", "shape", "std::string",
               "shapes of inputs, as NAME=SIZE,SIZE,...; a size is a number or the name of a dynamic dimension">,
    Option<"refusedOp", "refuse-op", "unsigned", "0",
           "for tests: refuse the n-th op that is created, as if its shape rules did; 0 refuses none">
  ];
  let dependentDialects = ["::deepstride::ds::DSDialect", "::deepstride::train::TrainDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect", "::mlir::func::FuncDialect"];
}

#endif
