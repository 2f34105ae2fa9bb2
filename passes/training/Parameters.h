// The parameters and running statistics of an entry: arguments that are states with a first value.
#ifndef DEEPSTRIDE_PASSES_TRAINING_PARAMETERS_H
#define DEEPSTRIDE_PASSES_TRAINING_PARAMETERS_H

#include "passes/training/Optimizers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace deepstride {

/// An argument of an entry that is the state of a parameter, or of a running statistic.
struct Parameter {
  mlir::StringAttr name; // of ONNX
  mlir::BlockArgument value;

  /// NAME/suffix: of a gradient and the optimizer's states, or of what a statistic has moved to.
  std::string stateName(llvm::StringRef suffix) const { return (name.getValue() + "/" + suffix).str(); }
};

/// Of the state in which micro-batches move a running statistic before a step makes it the running one.
inline constexpr llvm::StringLiteral movedSuffix = "moved";
/// Of the state of f32 that a parameter of fewer bits is rounded from.
inline constexpr llvm::StringLiteral masterSuffix = "master";

llvm::SmallVector<Parameter> parametersOf(mlir::func::FuncOp entry);
/// Those that no gradient moves, but each batch (ds.running_statistic).
llvm::SmallVector<Parameter> statisticsOf(mlir::func::FuncOp entry);

/// Where an entry has a whole parameter: an argument, or what is gathered from ranks that own parts, perhaps several
/// times. Arguments come first, then what is gathered in the order of the program.
struct WholeParameter {
  mlir::StringAttr name;
  mlir::Value value;
};
llvm::SmallVector<WholeParameter> wholeParametersOf(mlir::func::FuncOp entry);

/// The one entry of a model; fails after a diagnostic where there is none, or several.
llvm::FailureOr<mlir::func::FuncOp> entryOf(mlir::ModuleOp model);
/// The number of the output of that name, which an option names; fails after a diagnostic with the legal names.
llvm::FailureOr<unsigned> outputNamed(mlir::func::FuncOp entry, llvm::StringRef name, llvm::StringRef option);

/// "'a', 'b', 'c', 'd' and 12 more", for messages.
std::string listed(llvm::ArrayRef<llvm::StringRef> names);

/// Whether a regular expression matches the name of a weight, or of one that was tied to it: either means the
/// parameter.
bool isNamedBy(mlir::ModuleOp module, llvm::StringRef name, llvm::StringRef expression);

/// Fails after a diagnostic where something of the model has the name of what the entries of training add.
llvm::LogicalResult checkNames(mlir::func::FuncOp model, llvm::StringRef labels, const OptimizerSettings &optimizer);

/// Parameters and statistics of a reference in f64 become f64 from the first step on, not only where they are read.
void keepWideParameters(mlir::func::FuncOp model);

} // namespace deepstride

#endif
