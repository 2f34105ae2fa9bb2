// What a product of tiles needs to know of types and instructions. A micro-kernel knows what its operands hold, how
// they lie in a packed panel and what one step along K does; codegen/tile/Gemm.h has the loops.
#ifndef DEEPSTRIDE_CODEGEN_TILE_MICROKERNEL_H
#define DEEPSTRIDE_CODEGEN_TILE_MICROKERNEL_H

#include "codegen/lower/KernelBuilder.h"
#include "dialects/ds/Schedule.h"

#include <memory>

namespace deepstride {

/// One operand: element (i, j) lies at offset + i * rowStride + j * columnStride of a flat buffer.
struct Matrix {
  mlir::Value buffer, offset, rowStride, columnStride;
};

class MicroKernel {
public:
  /// `left` and `panel` are what the left operand and a packed panel hold, `result` the type of the sums.
  MicroKernel(mlir::VectorType accumulator, mlir::Type left, mlir::Type panel, mlir::Type result, int64_t interleave)
      : accumulator(accumulator), left(left), panel(panel), result(result), interleave(interleave) {}
  virtual ~MicroKernel() = default;

  /// `accumulator.getDimSize(0)` consecutive columns of a panel at one step of K, as multiplyAdd takes them.
  virtual mlir::Value loadPanel(KernelBuilder &k, mlir::Value buffer, mlir::Value position) const = 0;
  /// The step's elements of a row of the left operand, broadcast. Where `count` is given, only so many of them exist,
  /// at least one and not all, and the others count as 0.
  virtual mlir::Value loadRow(KernelBuilder &k, const Matrix &lhs, mlir::Value position, mlir::Value count) const = 0;
  virtual mlir::Value multiplyAdd(KernelBuilder &k, mlir::Value row, mlir::Value columns, mlir::Value sum) const = 0;
  /// Elements of a panel that hold what a step takes of one column.
  virtual int64_t storedPerStep() const { return interleave; }

  /// For panels of codes: what loadPanel gave, less a zero point and times a scale, each one for a column or null.
  virtual mlir::Value dequantize(KernelBuilder &, mlir::Value columns, mlir::Value /*zeroPoint*/,
                                 mlir::Value /*scale*/) const {
    return columns;
  }
  /// For panels of codes and of halves: element `index` along K of every column of a step, in the result's type.
  virtual mlir::Value elementsAt(KernelBuilder &, mlir::Value columns, int64_t /*index*/) const { return columns; }
  /// What KernelBuilder::setArithmetic takes.
  virtual llvm::StringRef arithmetic() const { return ""; }
  /// Whether loadRow can read a left operand whose elements along K lie apart.
  bool readsStrided() const { return interleave == 1; }

  int64_t lanes() const { return accumulator.getDimSize(0); }

  const mlir::VectorType accumulator;   // sums of consecutive columns of a row
  const mlir::Type left, panel, result; // element types
  const int64_t interleave;             // consecutive elements of a column that a panel keeps side by side
};

/// The micro-kernel of that name for operands of these element types; none in the reference, where it does not multiply
/// such types, and where vectors of the target's size have no such instruction. A weight that lies packed in the
/// package is streamed as it is stored, other operands are converted while they are packed.
std::unique_ptr<MicroKernel> makeMicroKernel(const LoweringTarget &target, ds::ProductKernel kernel,
                                             const ds::ProductTypes &types, bool isPacked);

/// The micro-kernel that an op's schedule names. Null without a schedule and in the reference: plain loops. Fails, with
/// a message, where the schedule does not suit the op or the target.
llvm::FailureOr<std::unique_ptr<MicroKernel>> scheduledKernel(KernelBuilder &k, mlir::Operation *op,
                                                              const ds::ProductTypes &types, bool isPacked);

} // namespace deepstride

#endif
