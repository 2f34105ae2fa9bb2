#include "frontends/onnx/dialect/ConstantNodes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace deepstride::onnx {

TypedAttr heldTensor(NamedAttribute attribute) {
  StringRef kind = attribute.getName();
  Attribute value = attribute.getValue();
  Builder builder(value.getContext());
  if (auto tensor = dyn_cast<TypedAttr>(value); tensor && kind == "value" && isa<ShapedType>(tensor.getType()))
    return tensor;
  if (isa<FloatAttr>(value) && kind == "value_float")
    return DenseElementsAttr::get(RankedTensorType::get({}, builder.getF32Type()), value);
  if (isa<IntegerAttr>(value) && kind == "value_int")
    return DenseElementsAttr::get(RankedTensorType::get({}, builder.getI64Type()), value);
  if (auto list = dyn_cast<DenseI64ArrayAttr>(value); list && kind == "value_ints")
    return builder.getI64TensorAttr(list.asArrayRef());
  if (auto list = dyn_cast<DenseF32ArrayAttr>(value); list && kind == "value_floats")
    return DenseElementsAttr::get(RankedTensorType::get({list.size()}, builder.getF32Type()), list.asArrayRef());
  return {};
}

} // namespace deepstride::onnx
