// Axes that are known only when the model runs: which one is meant is decided by the size expressions of a reshape, so
// that the ops themselves keep constant axes.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_RUNTIMEAXES_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_RUNTIMEAXES_H

#include "frontends/onnx/convert/Node.h"

namespace deepstride::onnx {

/// The axes counted from the front; diagnosed where one is outside of `rank` or listed twice, by the run where only
/// that knows it. With `mayRepeat` the run may list an axis twice.
std::optional<SizeVector> normalizedAxes(Node &n, const SizeVector &listed, int64_t rank, bool mayRepeat = false);
/// Those of an input, or without it of the attribute `axes`; nothing, undiagnosed, where there is neither.
std::optional<SizeVector> listedAxes(Node &n, unsigned input);

/// The element of a list at a position that may be an expression; 0 outside of it.
SizeExpr elementAt(const SizeVector &sizes, const SizeExpr &position);

/// A shape as three axes: all before the given one, that one, all behind.
SizeVector splitAround(const SizeVector &sizes, const SizeExpr &axis);

SizeVector withSize(const SizeVector &sizes, const SizeExpr &axis, const SizeExpr &size);

/// Without the given axes, which count in the full shape.
SizeVector withoutAxes(SizeVector sizes, SizeVector axes);

/// With axes of size 1 at the given places of the result.
SizeVector withUnitAxes(const SizeVector &sizes, const SizeVector &axes);

bool areConstant(const SizeVector &values);

/// Requires that the run finds `size` not below `least`; `what` was expected where it does.
void requireFor(Node &n, const SizeExpr &size, const SizeExpr &least, const llvm::Twine &what);

/// A size that the model computes from data: a symbol that the program defines at this point. `count` is one integer of
/// any type; what is negative counts as 0.
SizeExpr computedSize(Node &n, mlir::Value count);

/// [rank, count] indices of what is not zero; `count` becomes known while the code runs, unless constants decide it.
mlir::Value nonZero(Node &n, mlir::Value x);

/// The size that a one-element operand holds: known to the compiler where it can be, else computed.
std::optional<SizeExpr> anySizeOf(Node &n, unsigned input, llvm::StringRef role);

} // namespace deepstride::onnx

#endif
