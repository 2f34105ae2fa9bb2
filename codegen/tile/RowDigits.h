// Rows of floats as integers of 24 bits, in three digits of base 256: what is multiplied by bytes exactly, and added up
// as a float once a group. The method is that of Ozaki, Ogita, Oishi and Rump ("Error-free transformations of matrix
// multiplication", 2012), cut after the digits that a float of 32 bits needs.
#ifndef DEEPSTRIDE_CODEGEN_TILE_ROWDIGITS_H
#define DEEPSTRIDE_CODEGEN_TILE_ROWDIGITS_H

#include "codegen/tile/Gemm.h"

namespace deepstride {

constexpr int64_t rowDigits = 3;

/// A group of a row, x, has a power of two u with 0.99 2^22 <= max |x| / u < 2^23 (once max |x| >= 2^-103; u is at
/// least 2^-125): each element is rounded to a whole number of u, at most u / 2 away, and that number is d0 + 256 d1 +
/// 65536 d2 with digits of -128 to 127. Where an element is not finite, u is NaN, and so are all sums of the group.
struct RowDigits {
  /// Makes room for `rows` rows of `depth` elements in `groups` groups of `group`, 0 for one group of all. Columns are
  /// less the bias of codes, or by 1, where each has a zero point of its own as well.
  RowDigits(KernelBuilder &k, const VectorKernel &micro, const SizeExpr &rows, const SizeExpr &depth,
            const SizeExpr &groups, int64_t group, bool hasZeroPoints);

  /// Turns `count` rows of f32, whose elements lie side by side, into digits, as the micro-kernel reads them.
  Matrix emit(const Matrix &rows, mlir::Value count, mlir::Value depth);

private:
  void emitGroup(mlir::Value first, mlir::Value digits, mlir::Value number, mlir::Value from, mlir::Value to);
  /// Calls `body` with places [from, to) a vector at a time, those behind the last one masked out, and carries values.
  llvm::SmallVector<mlir::Value>
  vectors(mlir::Value from, mlir::Value to, mlir::ValueRange start,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value place, mlir::Value x, mlir::ValueRange)> body);
  mlir::Value integer(int32_t value);

  KernelBuilder &k;
  const VectorKernel &micro;
  int64_t group;
  int32_t less; // of every column
  bool isWhole; // whether no vector is cut
  mlir::Value source, bytes, starts, units;
  mlir::Value apart, groups;
};

} // namespace deepstride

#endif
