// What a product of tiles needs to know of types and instructions. A micro-kernel knows what its operands hold, how
// they lie in a packed panel and what one step along K does; codegen/tile/Gemm.h has the loops.
#ifndef DEEPSTRIDE_CODEGEN_TILE_MICROKERNEL_H
#define DEEPSTRIDE_CODEGEN_TILE_MICROKERNEL_H

#include "codegen/lower/KernelBuilder.h"
#include "dialects/ds/Schedule.h"

#include <memory>

namespace deepstride {

/// Beside rows of digits (RowDigits.h). K lies in segments of `steps` steps each, all of it where columns have one
/// scale: digit d of the elements of a segment begins at ((segment * rows + row) * 3 + d) * apart. Sums of products
/// start, in i32 [segments, rows, starting()], at the sums of digits times what every column is to be less, so that
/// they meet codes that are stored higher. Those of the lowest `atOnce` digits become one number; others are numbers of
/// their own.
struct DigitSums {
  mlir::Value starts, units; // of the lowest digit of each row, in f32
  mlir::Value totals;        // room for sums of columns, vector by vector of all rows; null with one scale
  mlir::Value rows;
  int64_t apart = 0, steps = 0, allSteps = 0;
  int64_t perGroup = 0; // segments that have one scale
  int64_t atOnce = 0;

  int64_t starting() const { return 4 - atOnce; }
};

/// One operand: element (i, j) lies at offset + i * rowStride + j * columnStride of a flat buffer.
struct Matrix {
  mlir::Value buffer, offset, rowStride, columnStride;
  DigitSums digits = {}; // of a left operand

  mlir::Value at(KernelBuilder &k, mlir::Value row, mlir::Value column) const {
    return k.add(offset, k.add(k.mul(row, rowStride), k.mul(column, columnStride)));
  }
};

/// What all micro-kernels have. Which loops are emitted around one depends on what its registers hold.
class MicroKernel {
public:
  /// Vectors of sums of one row, or squares of several rows.
  enum class Registers { vectors, squares };

  virtual ~MicroKernel() = default;

  /// Elements of a panel that hold what a step takes of one column.
  virtual int64_t storedPerStep() const { return interleave; }
  /// What KernelBuilder::setArithmetic takes.
  virtual llvm::StringRef arithmetic() const { return ""; }
  /// Whether products can read a left operand whose elements along K lie apart.
  bool readsStrided() const { return interleave == 1; }

  int64_t lanes() const { return accumulator.getDimSize(0); }

  const Registers registers;
  const mlir::VectorType accumulator;   // sums of consecutive columns of a row
  const mlir::Type left, panel, result; // element types
  const int64_t interleave;             // consecutive elements of a column that a panel keeps side by side

protected:
  MicroKernel(Registers registers, mlir::VectorType accumulator, mlir::Type left, mlir::Type panel, mlir::Type result,
              int64_t interleave)
      : registers(registers), accumulator(accumulator), left(left), panel(panel), result(result),
        interleave(interleave) {}
};

/// A step multiplies what it takes of one row, broadcast, by vectors of a panel.
class VectorKernel : public MicroKernel {
public:
  /// `left` and `panel` are what the left operand and a packed panel hold, `result` the type of the sums.
  VectorKernel(mlir::VectorType accumulator, mlir::Type left, mlir::Type panel, mlir::Type result, int64_t interleave)
      : MicroKernel(Registers::vectors, accumulator, left, panel, result, interleave) {}
  static bool classof(const MicroKernel *kernel) { return kernel->registers == Registers::vectors; }

  /// Multiply-adds that a step makes one after the other, each of elements of K of its own. Those of all rows and
  /// columns come before the next, so that registers hold what one of them takes.
  virtual int64_t parts() const { return 1; }
  /// `accumulator.getDimSize(0)` consecutive columns of a panel at one step of K, as multiplyAdd takes them; where a
  /// step has parts, elementsAt gives each.
  virtual mlir::Value loadPanel(KernelBuilder &k, mlir::Value buffer, mlir::Value position) const = 0;
  /// What `part` takes of a row of the left operand, broadcast. Where `count` is given, only so many of the step's
  /// elements exist, at least one and not all, and the others count as 0.
  virtual mlir::Value loadRow(KernelBuilder &k, const Matrix &lhs, mlir::Value position, mlir::Value count,
                              int64_t part) const = 0;
  virtual mlir::Value multiplyAdd(KernelBuilder &k, mlir::Value row, mlir::Value columns, mlir::Value sum) const = 0;

  /// Rows of digits that stand for a row of floats: their sums are integers, which become a float once a group.
  virtual int64_t digits() const { return 1; }
  /// For such kernels: what multiplyAdd takes of a column is greater than its code by so much.
  virtual int32_t codeBias() const { return 0; }

  /// Rows of so many vectors that a block has at most, whatever its schedule says.
  virtual int64_t tallest(int64_t /*vectors*/) const { return 1 << 10; }

  /// For panels of codes: what multiplyAdd takes, less the zero point of each column.
  virtual mlir::Value subtract(KernelBuilder &, mlir::Value columns, mlir::Value /*zeroPoints*/) const {
    return columns;
  }
  /// Of what loadPanel gave: part `index` of the step or, for panels that are widened (Widen.h), what a step of the
  /// kernel of widened panels takes as its number `index` of this kernel's step.
  virtual mlir::Value elementsAt(KernelBuilder &, mlir::Value columns, int64_t /*index*/) const { return columns; }
};

/// Registers that a step changes by number: each holds up to 16 lines of 64 bytes, which are sums of a row, elements of
/// a row along K, or a line of a panel: `interleave` elements of each of 16 columns. One instruction multiplies all
/// lines of a square by all columns of another.
class SquareKernel : public MicroKernel {
public:
  static constexpr int64_t lines = 16, lineBytes = 64;
  /// Numbers: sums of the upper row of squares, of the lower one, then what is multiplied.
  static constexpr int64_t squaresPerRow = 3, ofRows = 2 * squaresPerRow, ofPanel = ofRows + 1;

  SquareKernel(mlir::VectorType accumulator, mlir::Type left, mlir::Type panel, mlir::Type result, int64_t interleave)
      : MicroKernel(Registers::squares, accumulator, left, panel, result, interleave) {}
  static bool classof(const MicroKernel *kernel) { return kernel->registers == Registers::squares; }

  /// Elements of K that a square holds.
  int64_t depth() const { return lines * interleave; }

  /// Gives registers their shapes: `rows` lines for all but that of the panel, which has 16; nothing else may be done
  /// with them before. What they held is lost, unless that is the shape that they have.
  virtual void configure(KernelBuilder &k, mlir::Value rows) const = 0;
  /// What ends a kernel that may have used registers; afterwards they cost the system nothing.
  virtual void release(KernelBuilder &k) const = 0;
  virtual void clear(KernelBuilder &k, int64_t number) const = 0;
  /// Lines lie `stride` elements apart in a buffer.
  virtual void load(KernelBuilder &k, int64_t number, mlir::Value buffer, mlir::Value position,
                    int64_t stride) const = 0;
  virtual void store(KernelBuilder &k, int64_t number, mlir::Value buffer, mlir::Value position,
                     int64_t stride) const = 0;
  /// What multiplies a single row by the same panels faster, with the same sums; null where nothing does.
  virtual const VectorKernel *singleRow() const { return nullptr; }
  /// Adds the product of the rows and the columns that were loaded.
  virtual void multiplyAdd(KernelBuilder &k, int64_t sums) const = 0;
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
