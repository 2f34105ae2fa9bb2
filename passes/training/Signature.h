// Makes the signature of an entry: arguments and results with the names that packages show.
#ifndef DEEPSTRIDE_PASSES_TRAINING_SIGNATURE_H
#define DEEPSTRIDE_PASSES_TRAINING_SIGNATURE_H

#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace deepstride {

/// Arguments and results of an entry that is being made, with their attributes.
class Signature {
public:
  explicit Signature(mlir::func::FuncOp function) : function(function), builder(function.getContext()) {}

  /// A new argument behind the others.
  mlir::Value input(llvm::StringRef name, mlir::Type element, llvm::ArrayRef<SizeExpr> sizes);
  mlir::Value state(llvm::StringRef name, mlir::Type element, llvm::ArrayRef<SizeExpr> sizes);
  /// A new result behind those that were added, or the next value of a state.
  void result(mlir::Value value, llvm::StringRef name) { add(value, ds::nameAttr, name); }
  void newState(mlir::Value value, llvm::StringRef name) { add(value, ds::stateAttr, name); }

  /// Puts what was added in the place of the function's terminator.
  void finish();

private:
  mlir::Value argument(mlir::Type element, llvm::ArrayRef<SizeExpr> sizes,
                       llvm::ArrayRef<std::pair<llvm::StringRef, mlir::Attribute>> given);
  void add(mlir::Value value, llvm::StringRef attribute, llvm::StringRef name);

  mlir::func::FuncOp function;
  mlir::Builder builder;
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<mlir::DictionaryAttr> attributes;
};

} // namespace deepstride

#endif
