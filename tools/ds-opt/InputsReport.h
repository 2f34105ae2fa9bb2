// What a model takes and gives, and which of it decides what is computed: what --inputs prints.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_INPUTSREPORT_H
#define DEEPSTRIDE_TOOLS_DSOPT_INPUTSREPORT_H

#include "dialects/ds/SizeExpr.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <set>

namespace deepstride {

class InputsReport {
public:
  /// Of a model as it was read, with a name for every dynamic dimension.
  explicit InputsReport(mlir::ModuleOp nodes);
  /// Of the same model as ds ops: what its branches, loops and shapes depend on, and what the outputs are.
  void study(mlir::ModuleOp program);
  void print(llvm::raw_ostream &stream) const;

private:
  struct Tensor {
    std::string name, element;
    std::vector<std::string> dims;
    bool hasShape = true, isPinned = false;
    std::string text() const;
  };
  /// What a dimension or an input decides, and which numbers it is compared with.
  struct Effect {
    bool branches = false, loops = false, shapes = false;
    std::set<int64_t> compared;
  };
  using Kind = bool Effect::*;

  void note(const SizeExpr &size, Kind kind);
  void follow(mlir::Value value, mlir::func::FuncOp function, Kind kind, llvm::DenseSet<mlir::Value> &seen);
  void studyFunction(mlir::func::FuncOp function);
  static Tensor tensorOf(mlir::Type type, mlir::StringAttr name, mlir::ArrayAttr dims, llvm::StringRef fallback);
  std::map<std::string, std::vector<std::string>> owners() const;
  static std::string describe(const std::string &name, const Effect &effect, llvm::StringRef element, bool isPinnable);
  void printJoins(llvm::raw_ostream &stream) const;

  std::vector<Tensor> inputs, outputs;
  std::map<std::string, Effect> ofDims, ofInputs;
};

} // namespace deepstride

#endif
