// Arguments are inserted at the end, where no use moves; results replace the terminator at once.
#include "passes/training/Signature.h"

using namespace mlir;

namespace deepstride {

Value Signature::input(StringRef name, Type element, ArrayRef<SizeExpr> sizes) {
  return argument(element, sizes, {{ds::nameAttr, builder.getStringAttr(name)}});
}

Value Signature::state(StringRef name, Type element, ArrayRef<SizeExpr> sizes) {
  return argument(element, sizes,
                  {{ds::nameAttr, builder.getStringAttr(name)}, {ds::stateAttr, builder.getStringAttr(name)}});
}

void Signature::finish() {
  Block &body = function.getBody().front();
  if (!body.empty() && body.back().hasTrait<OpTrait::IsTerminator>())
    body.back().erase();
  OpBuilder end = OpBuilder::atBlockEnd(&body);
  func::ReturnOp::create(end, function.getLoc(), values);
  function.setType(builder.getFunctionType(body.getArgumentTypes(), ValueRange(values).getTypes()));
  function.setAllResultAttrs(attributes);
}

Value Signature::argument(Type element, ArrayRef<SizeExpr> sizes, ArrayRef<std::pair<StringRef, Attribute>> given) {
  SmallVector<int64_t> shape;
  for (const SizeExpr &size : sizes)
    shape.push_back(size.constant().value_or(ShapedType::kDynamic));
  NamedAttrList list;
  for (auto [name, value] : given)
    list.set(name, value);
  list.set(ds::dimsAttr, toAttribute(builder.getContext(), SizeVector(sizes)));
  unsigned number = function.getNumArguments();
  (void)function.insertArgument(number, RankedTensorType::get(shape, element), list.getDictionary(builder.getContext()),
                                function.getLoc());
  return function.getArgument(number);
}

void Signature::add(Value value, StringRef attribute, StringRef name) {
  values.push_back(value);
  attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(attribute, builder.getStringAttr(name))));
}

} // namespace deepstride
