// Contents of tensors as numbers. A tensor's symbolic contents are whole numbers without a width: an integer element is
// what remains of one modulo the type's width, and a float element is the number itself. Whoever wants the number must
// know that nothing wrapped: data may be replaced by contents only where that is certain (isExact); where contents
// steer sizes, it is required of the run.
#ifndef DEEPSTRIDE_DIALECTS_DS_CONTENTS_H
#define DEEPSTRIDE_DIALECTS_DS_CONTENTS_H

#include "dialects/ds/Inference.h"

namespace deepstride {

/// True where elements of the type may be followed through arithmetic: i1, i32, i64, f32 and f64.
bool isTracked(mlir::Type type);
inline bool isTracked(const TensorFacts &facts) { return facts.contents && isTracked(facts.elementType); }

/// True where every element is its content, whatever the run brings: within the type's range for sure, and without
/// anything that evaluation might refuse.
bool isExact(const SizeExpr &content, mlir::Type type);
bool isExact(const TensorFacts &facts);

/// An element as a number. Where it may have wrapped, or may have been rounded, the number is `within` the type's
/// range; nothing where it certainly was rounded.
std::optional<SizeExpr> settled(const SizeExpr &content, mlir::Type type);

/// The content as a number that only sizes may rely on: it never is exact.
SizeExpr forSizes(const SizeExpr &content, mlir::Type type);

/// The size without what evaluation might refuse: what is `within` bounds without them, and a product divided by one of
/// its factors without it.
SizeExpr withoutFailures(const SizeExpr &size);
/// The quotient, or the remainder 0, that a division by a size that may be 0 has where it is not; nothing for other
/// calls.
std::optional<SizeExpr> quotientUnlessZero(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments);

/// What is kept of the result of an addition, a subtraction or a multiplication, given without a width: nothing where
/// it is too large to follow. `mayBeMinusZero` says that a 0 might have been one in floats.
std::optional<SizeExpr> kept(const std::optional<SizeExpr> &content, mlir::Type type, bool mayBeMinusZero = false);

/// True where an element's expression is so long that it is data to everyone: what every step of arithmetic doubles
/// would take its time long before it is too long a size.
bool isTooLong(const SizeExpr &content);

} // namespace deepstride

#endif
