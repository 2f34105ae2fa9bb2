// Element types of at most a byte other than i1, i8 and ui8: each element lies in a byte of its own, integers extended
// to it, floats in its low bits. Floats are computed with in f32, integers in i8.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_NARROWTYPES_H
#define DEEPSTRIDE_CODEGEN_LOWER_NARROWTYPES_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

bool isNarrowFloat(mlir::Type element);
bool isNarrowInteger(mlir::Type element);

/// The f32 that a byte stands for; exact.
mlir::Value decodeNarrowFloat(mlir::OpBuilder &b, mlir::Location loc, mlir::Value raw, mlir::Type element);
/// To nearest, ties to even, without saturation: what is too great becomes infinity, else NaN, else the greatest
/// number, whichever the type has first. NaN becomes -0 where the type has none.
mlir::Value encodeNarrowFloat(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type element);
/// The low bits of an i8, extended to it again.
mlir::Value wrapNarrowInteger(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type element);

} // namespace deepstride

#endif
