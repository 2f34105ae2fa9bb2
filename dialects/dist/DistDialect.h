// The dist dialect in C++.
#ifndef DEEPSTRIDE_DIALECTS_DIST_DISTDIALECT_H
#define DEEPSTRIDE_DIALECTS_DIST_DISTDIALECT_H

#include "dialects/ds/SizeExpr.h"
#include "dialects/ds/SizeTraits.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/dist/DistDialect.h.inc"
#include "dialects/dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/dist/DistTypes.h.inc"
namespace deepstride::dist {
/// The size symbols of an axis of the mesh, which the runtime binds: how many ranks it has, and which one this is.
SizeExpr meshSize(llvm::StringRef axis);
SizeExpr meshIndex(llvm::StringRef axis);

/// Of the argument of an entry: all ranks give the same value, so that they may branch on it alike.
inline constexpr llvm::StringLiteral uniformAttr = "dist.uniform";
} // namespace deepstride::dist

#include "dialects/dist/DistInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"

#endif
