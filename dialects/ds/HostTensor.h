// Tensors in host memory and the ops that the compiler itself can evaluate on them: what folding computes for small
// constants and packaging for weights. One evaluator for both, so that both round alike.
#ifndef DEEPSTRIDE_DIALECTS_DS_HOSTTENSOR_H
#define DEEPSTRIDE_DIALECTS_DS_HOSTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <memory>
#include <optional>

namespace deepstride {

/// A dense row-major tensor: a view of memory that outlives it, such as a mapped file, or bytes of its own. Booleans
/// take a byte each.
struct HostTensor {
  mlir::Type element;
  llvm::SmallVector<int64_t> shape;
  const char *data = nullptr;
  std::shared_ptr<std::vector<char>> owned;

  /// Zero-filled, with bytes of its own.
  static HostTensor allocate(mlir::Type element, llvm::ArrayRef<int64_t> shape);
  static HostTensor fromAttribute(mlir::DenseElementsAttr value);
  mlir::DenseElementsAttr toAttribute() const;

  int64_t count() const;
  int64_t bytes() const;
  int64_t elementBytes() const;
};

/// The only result of an op of the ds dialect, with the bits that a kernel would compute: both evaluate
/// dialects/ds/ScalarFunctions.h. Nothing where the op or its attributes cannot be evaluated (integer division by zero,
/// sizes that are not known, results of narrow floats).
std::optional<HostTensor> evaluateOnHost(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands);

// Movement, shared with the evaluator.
HostTensor transposeOnHost(const HostTensor &source, llvm::ArrayRef<int64_t> permutation);
HostTensor sliceOnHost(const HostTensor &source, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                       llvm::ArrayRef<int64_t> steps);
HostTensor concatOnHost(llvm::ArrayRef<HostTensor> parts, int64_t axis);
HostTensor packOnHost(const HostTensor &source, int64_t panel);
HostTensor broadcastOnHost(const HostTensor &source, llvm::ArrayRef<int64_t> shape);
/// Nothing where an index is outside the axis.
std::optional<HostTensor> gatherOnHost(const HostTensor &source, const HostTensor &indices, int64_t axis,
                                       llvm::ArrayRef<int64_t> shape);
/// Offset of a row-major position of `shape` in a tensor that NumPy broadcasts to it.
int64_t broadcastOffset(int64_t flat, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> own);

} // namespace deepstride

#endif
