// Stored matrices with one number in a band of diagonals and another one elsewhere: the triangles of causal masks.
#ifndef DEEPSTRIDE_DIALECTS_DS_DIAGONALS_H
#define DEEPSTRIDE_DIALECTS_DS_DIAGONALS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace deepstride::ds {

/// Says of a ds.source what its bytes hold: the importer reads them, passes do not.
inline constexpr llvm::StringLiteral diagonalsAttr = "ds.diagonals";

/// Element (i, j) is `inside` where j - i is at least `lower` and at most `upper`; a bound that is not given is open.
struct Diagonals {
  int64_t rows, columns;
  std::optional<int64_t> lower, upper;
  double inside, outside;
};

/// Nothing where the elements, by their place in row-major order, are no such matrix behind axes of size 1, or all one
/// number.
std::optional<Diagonals> findDiagonals(mlir::RankedTensorType type, llvm::function_ref<double(int64_t)> element);

mlir::Attribute toAttribute(mlir::MLIRContext *context, const Diagonals &diagonals);
std::optional<Diagonals> diagonalsFrom(mlir::Attribute attribute);

} // namespace deepstride::ds

#endif
