// What a model asks for that has no conversion, gathered so that the user sees all of it at once.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_REPORT_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_REPORT_H

#include "frontends/onnx/convert/Node.h"

namespace deepstride::onnx {

class UnsupportedReport {
public:
  /// `operands` and `reason` of the first node of an operator stand for all that share the reason.
  void add(NodeOp node, llvm::StringRef operands, llvm::StringRef reason, llvm::StringRef advice);
  bool empty() const { return entries.empty(); }
  void emit(mlir::Location where) const;

private:
  struct Entry {
    std::string label, operands, reason, advice;
    llvm::SmallVector<std::string> nodes;
    unsigned count = 0;
  };
  std::vector<Entry> entries; // one per operator and reason, in order of appearance
};

} // namespace deepstride::onnx

#endif
