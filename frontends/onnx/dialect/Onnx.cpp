// Registers the importer's private dialect and verifies its ops. Patterns that give the ops meaning
// live with the conversion to `ds`.

#include "frontends/onnx/dialect/Onnx.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace deepstride::onnx;

#include "frontends/onnx/dialect/OnnxDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "frontends/onnx/dialect/OnnxTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "frontends/onnx/dialect/OnnxAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "frontends/onnx/dialect/OnnxOps.cpp.inc"

void OnnxDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "frontends/onnx/dialect/OnnxTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "frontends/onnx/dialect/OnnxAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "frontends/onnx/dialect/OnnxOps.cpp.inc"
      >();
}

LogicalResult RangeAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef /*file*/, uint64_t /*offset*/,
                                uint64_t /*length*/, Type type) {
  // C1
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return emitError() << "expects a tensor of static shape, found " << type;
  return success();
}

LogicalResult InitializerOp::verify() {
  // C1
  if (!isa<ElementsAttr, RangeAttr>(getValue()))
    return emitOpError("expects elements or a range, found ") << getValue();
  return success();
}

LogicalResult NodeOp::verify() {
  // C1
  if (getOutputs().size() != getNumResults())
    return emitOpError("expects one name in 'outputs' per result (")
           << getNumResults() << "), found " << getOutputs().size();
  // C2
  if (getGraphs().size() != getBodies().size())
    return emitOpError("expects one name in 'graphs' per region (")
           << getBodies().size() << "), found " << getGraphs().size();
  for (Attribute name : getGraphs())
    if (getAttrs().contains(cast<StringAttr>(name).getValue()))
      return emitOpError("expects ") << name << " to be a graph or an attribute, found both";
  // C3
  for (Region &body : getBodies())
    if (body.front().empty() || !isa<ReturnOp>(body.front().back()))
      return emitOpError("expects its regions to end in 'onnx.return'");
  return success();
}
