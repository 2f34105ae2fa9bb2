// Registration and verifiers of the dist dialect.
#include "dialects/dist/DistDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace deepstride;

#include "dialects/dist/DistDialect.cpp.inc"
#include "dialects/dist/DistEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/dist/DistTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"

void dist::DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/dist/DistTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
}

LogicalResult dist::AllReduceStartOp::verify() {
  if (!getPending().hasOneUse() || !isa<WaitOp>(*getPending().getUsers().begin()))
    return emitOpError("C1: expects exactly one dist.wait to use the result");
  if (getSite().empty())
    return emitOpError("C2: expects a site name");
  Type element = getSource().getType().getElementType();
  if (!isa<FloatType>(element) && !element.isSignlessInteger(32) && !element.isSignlessInteger(64))
    return emitOpError("C3: expects a float, i32 or i64 element type, found ") << element;
  return success();
}

LogicalResult dist::WaitOp::verify() {
  auto start = getPending().getDefiningOp<AllReduceStartOp>();
  if (!start || start.getSource().getType() != getType())
    return emitOpError("C1: expects a start of type ") << getType();
  return success();
}
