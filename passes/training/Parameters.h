// The parameters of an entry: arguments that are states with a first value.
#ifndef DEEPSTRIDE_PASSES_TRAINING_PARAMETERS_H
#define DEEPSTRIDE_PASSES_TRAINING_PARAMETERS_H

#include "passes/training/Optimizers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace deepstride {

/// An argument of an entry that is a parameter's state.
struct Parameter {
  mlir::StringAttr name; // of ONNX
  mlir::BlockArgument value;

  /// NAME/suffix: of its gradient and of the optimizer's states.
  std::string stateName(llvm::StringRef suffix) const { return (name.getValue() + "/" + suffix).str(); }
};

llvm::SmallVector<Parameter> parametersOf(mlir::func::FuncOp entry);

/// The one entry of a model; fails after a diagnostic where there is none, or several.
llvm::FailureOr<mlir::func::FuncOp> entryOf(mlir::ModuleOp model);
/// The number of the output of that name, which an option names; fails after a diagnostic with the legal names.
llvm::FailureOr<unsigned> outputNamed(mlir::func::FuncOp entry, llvm::StringRef name, llvm::StringRef option);

/// Fails after a diagnostic where something of the model has the name of what the entries of training add.
llvm::LogicalResult checkNames(mlir::func::FuncOp model, llvm::StringRef labels, const OptimizerSettings &optimizer);

/// Parameters of a reference in f64 become f64 from the first step on, not only where they are read.
void keepWideParameters(mlir::func::FuncOp model);

} // namespace deepstride

#endif
