// Rows of floats as integers of 24 bits, in three digits of base 256: what is multiplied by bytes exactly, and added up
// as a float once a segment of K. The method is that of Ozaki, Ogita, Oishi and Rump ("Error-free transformations of
// matrix multiplication", 2012), cut after the digits that a float of 32 bits needs.
#ifndef DEEPSTRIDE_CODEGEN_TILE_ROWDIGITS_H
#define DEEPSTRIDE_CODEGEN_TILE_ROWDIGITS_H

#include "codegen/tile/Gemm.h"

namespace deepstride {

constexpr int64_t rowDigits = 3;

/// What a product by digits has: the codes of its columns, and how many rows a sweep has.
struct DigitShape {
  int64_t group;      // steps of K that have one scale for a column, 0 for all
  int64_t steps;      // of its panels
  int64_t width;      // columns of a panel
  int64_t rows;       // at most
  bool hasZeroPoints; // of each column
};

/// A row, x, has a power of two u with 0.99 2^22 <= max |x| / u < 0.997 2^23 (once max |x| >= 2^-103; u is at least
/// 2^-125): each element is rounded to a whole number of u, at most u / 2 away, and that number is d0 + 256 d1 +
/// 65536 d2 with digits of -128 to 127. Where an element is not finite, u is NaN, and so are all sums of the row.
struct RowDigits {
  /// Makes room for rows of `depth` elements.
  RowDigits(KernelBuilder &k, const VectorKernel &micro, const DigitShape &shape, const SizeExpr &depth);

  /// Turns `count` rows of f32, whose elements lie side by side, into digits, as the micro-kernel reads them.
  Matrix emit(const Matrix &rows, mlir::Value count, mlir::Value depth);

private:
  /// What turns a row into whole numbers.
  struct Unit {
    mlir::Value isFinite, inverse;
  };
  Unit emitUnit(mlir::Value first, mlir::Value depth, mlir::Value row);
  void emitSegment(const Unit &unit, mlir::Value first, mlir::Value count, mlir::Value digits, mlir::Value start);
  /// Calls `body` with places [from, from + count) a vector at a time, those behind the last one masked out, and
  /// carries values.
  llvm::SmallVector<mlir::Value>
  vectors(mlir::Value from, mlir::Value count, mlir::ValueRange start,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value place, mlir::Value x, mlir::ValueRange)> body);
  mlir::Value integer(int32_t value);

  KernelBuilder &k;
  const VectorKernel &micro;
  int32_t less; // of every column
  DigitSums sums;
  bool isWhole; // whether no vector is cut
  mlir::Value source, bytes;
};

/// Sums of a panel whose columns have a scale for each group of K: under the codes of a segment, which registers hold,
/// all rows are walked.
void emitSegmentProduct(KernelBuilder &k, const VectorKernel &micro, const Matrix &lhs, mlir::Value rows,
                        mlir::Value depth, const Panel &panel, mlir::Value columns, TileSink sink);

} // namespace deepstride

#endif
