// Which products micro-kernels compute, and how what they read lies in memory: what passes that schedule and pack,
// recipes and code generation agree on.
#ifndef DEEPSTRIDE_DIALECTS_DS_SCHEDULE_H
#define DEEPSTRIDE_DIALECTS_DS_SCHEDULE_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Null for an op that is computed by plain loops.
inline ScheduleAttr scheduleOf(mlir::Operation *op) { return op->getAttrOfType<ScheduleAttr>(scheduleAttr); }

/// Whether products of integers of this type are summed in i32.
inline bool isSummedWide(mlir::Type element) {
  return llvm::isa<mlir::IntegerType>(element) && (element.isInteger(8) || element.isInteger(16));
}

/// What may stand for the floats of a quantized weight.
inline bool isCode(mlir::Type element) { return element.isSignlessInteger(8) || element.isSignlessInteger(4); }

/// Element types of a product's operands and of its result.
struct ProductTypes {
  mlir::Type left, right, result;
};

/// What a processor must have for a micro-kernel: vectors, as all have; vpmaddwd on these, which there is up to 512
/// bits; the instruction of byte_dot; an instruction of its own; or one that multiplies squares.
enum class KernelNeeds { nothing, wordPairs, fitting, byteDots, instruction, squares };

/// A row of the registry, ProductKernels.def.
struct ProductKernelRow {
  ProductKernel kernel;
  KernelNeeds needs;
  double rate; // on paper
  int64_t interleave;
  bool (*multiplies)(const ProductTypes &types, bool isPacked);

  /// Whether a machine has it only where it names it.
  bool isNamed() const { return needs == KernelNeeds::instruction || needs == KernelNeeds::squares; }
};
llvm::ArrayRef<ProductKernelRow> productKernels();
const ProductKernelRow &rowOf(ProductKernel kernel);

inline bool usesSquares(ProductKernel kernel) { return rowOf(kernel).needs == KernelNeeds::squares; }

/// Whether the kernel multiplies these, the right operand packed in the package or not.
bool multiplies(ProductKernel kernel, const ProductTypes &types, bool isPacked);

/// Rows of the right operand whose elements of one column lie side by side in a panel.
int64_t interleaveOf(ProductKernel kernel, mlir::Type right);

/// Elements along K whose codes registers hold at once beside digits of rows: a part of a group of whole steps, as
/// large as the registers of vectors of `lanes` sums allow.
int64_t digitSegment(int64_t group, int64_t interleave, int64_t lanes);

/// Whether panels of pixels go on from one image of a batch to the next: where all sizes of an image are known, and the
/// last of its vectors of `lanes` sums would be empty for a good part, or it is the only one.
bool joinsImages(ConvOp op, int64_t lanes);

/// Bits of a sum in a register: narrow floats are summed in f32.
inline unsigned sumBits(mlir::Type result) {
  return llvm::isa<mlir::FloatType>(result) ? std::max(32U, result.getIntOrFloatBitWidth())
                                            : result.getIntOrFloatBitWidth();
}

} // namespace deepstride::ds

#endif
