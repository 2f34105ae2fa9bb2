// Registration of the ds dialect and the generated definitions.
#include "dialects/ds/DsDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace deepstride;

#include "dialects/ds/DsDialect.cpp.inc"
#include "dialects/ds/DsEnums.cpp.inc"
#include "dialects/ds/DsInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/ds/DsAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/ds/DsOps.cpp.inc"

void ds::DSDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/ds/DsAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/ds/DsOps.cpp.inc"
      >();
}

Operation *ds::DSDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location location) {
  if (auto elements = dyn_cast<ElementsAttr>(value); elements && isa<RankedTensorType>(type))
    return ConstantOp::create(builder, location, elements);
  return nullptr;
}
