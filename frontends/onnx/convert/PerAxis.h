// Operands with one element for each place of an axis. The standard lets none of them broadcast: each is as long as the
// axis, which is diagnosed where the model tells, and required of a run where only that does.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_PERAXIS_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_PERAXIS_H

#include "frontends/onnx/convert/Node.h"

namespace deepstride::onnx {

/// One element of a vector for each of `count` things, of which `each` names one.
struct VectorRule {
  SizeExpr count;
  llvm::StringRef each;
  bool orOne = false; // a single element stands for all of them
};

/// Whether the input has one axis, of the size of the rule.
bool requireVector(Node &n, unsigned input, const VectorRule &rule);

/// `value`, an input as such or in another type, in the place of `axis` of `rank` axes; null after a diagnostic.
mlir::Value vectorAlong(Node &n, unsigned input, mlir::Value value, int64_t axis, int64_t rank, const VectorRule &rule);

/// Whether the input has exactly these sizes.
bool requireSizes(Node &n, unsigned input, llvm::ArrayRef<SizeExpr> expected, llvm::StringRef what);

/// Whether the input broadcasts to these sizes and does not enlarge them.
bool requireBroadcastTo(Node &n, unsigned input, llvm::ArrayRef<SizeExpr> target, llvm::StringRef what);

} // namespace deepstride::onnx

#endif
