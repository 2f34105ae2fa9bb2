// Tensors in host memory and the ops that the compiler itself can evaluate on them: what folding computes for small
// constants and packaging for weights. One evaluator for both, so that both round alike.
#ifndef DEEPSTRIDE_DIALECTS_DS_HOSTTENSOR_H
#define DEEPSTRIDE_DIALECTS_DS_HOSTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <memory>
#include <optional>

namespace deepstride {
class SizeAnalysis;

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

/// One element for whoever asks for a number: floats as the double nearest to them, integers in 64 bits. Arithmetic on
/// elements has types of its own (HostScalars.h).
struct HostNumber {
  double real = 0;
  int64_t integer = 0;
};
HostNumber readNumber(mlir::Type element, const char *at);
void writeNumber(mlir::Type element, char *at, const HostNumber &number);

/// The only result of an op of the ds dialect. Pointwise ops give the bits that a kernel would compute, since both
/// evaluate dialects/ds/ScalarFunctions.h; sums and products of several floats are rounded at every step, from the
/// first to the last, where a kernel may take them in another order (dependsOnOrder). Nothing where the op or its
/// attributes cannot be evaluated (integer division by zero, sizes that are not known, results of narrow floats).
std::optional<HostTensor> evaluateOnHost(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands);
/// The same for ops of any number of results.
std::optional<llvm::SmallVector<HostTensor>> evaluateResultsOnHost(mlir::Operation *op,
                                                                   llvm::ArrayRef<HostTensor> operands);

/// Whether a kernel may give other last bits than evaluateOnHost: the op adds or multiplies floats in an order that is
/// the target's choice, and they are no whole numbers that every order adds up alike.
bool dependsOnOrder(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands);

/// The elements of a value that depends on small constants only; nothing where it depends on anything else, or where
/// that takes more ops or elements than shape arithmetic does, or than the analysis has left. `analysis` knows the
/// value and what is behind it. Elements behind an op that `dependsOnOrder` may steer sizes, but are none of a
/// kernel's: they are given to those who ask for them by the last argument only.
std::optional<HostTensor> evaluateConstant(mlir::Value value, SizeAnalysis &analysis, bool *isOrdered = nullptr);

/// Casts between integers, their sums, differences and products element by element, and sums along axes that follow
/// each other, by loops over their types; nothing for all else. A part of evaluateOnHost (HostIntegers.cpp).
std::optional<HostTensor> computeIntegersOnHost(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands);

/// Casts between f32 and f16 or bf16; nothing for all else. A part of evaluateOnHost (HostFloats.cpp).
std::optional<HostTensor> castFloatsOnHost(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands);

// The parts of evaluateOnHost that combine or choose elements (HostReductions.cpp), that look at rows of them
// (HostRows.cpp), and that move windows over them (HostWindows.cpp).
std::optional<HostTensor> evaluateChoiceOnHost(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands);
std::optional<HostTensor> evaluateRowsOnHost(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands);
std::optional<HostTensor> evaluateWindowsOnHost(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands);

/// [rank, count] indices of the elements that are not zero, in row-major order.
HostTensor nonZeroOnHost(const HostTensor &input);

// Movement, shared with the evaluator.
HostTensor transposeOnHost(const HostTensor &source, llvm::ArrayRef<int64_t> permutation);
HostTensor sliceOnHost(const HostTensor &source, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                       llvm::ArrayRef<int64_t> steps);
HostTensor concatOnHost(llvm::ArrayRef<HostTensor> parts, int64_t axis);
HostTensor packOnHost(const HostTensor &source, int64_t panel, int64_t interleave);
HostTensor broadcastOnHost(const HostTensor &source, llvm::ArrayRef<int64_t> shape);
/// Nothing where an index is outside the axis.
std::optional<HostTensor> gatherOnHost(const HostTensor &source, const HostTensor &indices, int64_t axis,
                                       llvm::ArrayRef<int64_t> shape);
/// Offset of a row-major position of `shape` in a tensor that NumPy broadcasts to it.
int64_t broadcastOffset(int64_t flat, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> own);

} // namespace deepstride

#endif
