// The dist dialect in C++.
#ifndef DEEPSTRIDE_DIALECTS_DIST_DISTDIALECT_H
#define DEEPSTRIDE_DIALECTS_DIST_DISTDIALECT_H

#include "dialects/ds/KeepsSizes.h"
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
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"

#endif
