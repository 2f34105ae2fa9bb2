// Initializers and other stored tensors: small ones become constants of the IR, larger ones weights, which stay in
// their file until packaging reads them.
#include "frontends/onnx/convert/Conversion.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace deepstride::onnx {

static int64_t byteSize(RankedTensorType type) {
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

Value Conversion::importTensor(TypedAttr value, StringRef name) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !isSupportedElement(type.getElementType())) {
    emitError(builder.getLocation()) << "constant '" << name << "': element type "
                                     << describeElement(getElementTypeOrSelf(value.getType()))
                                     << " is not supported; legal are bool, integers and floats of 8 to 64 bits";
    failedNodes = true;
    return {};
  }
  auto elements = dyn_cast<DenseElementsAttr>(value);
  if (!elements || byteSize(type) > ds::ConstantOp::byteLimit)
    return importWeight(value, type, name);
  Value result = builder.constant(elements);
  result.getDefiningOp()->setAttr(ds::valueNameAttr, builder.getBuilder().getStrArrayAttr({name}));
  return result;
}

Value Conversion::importWeight(TypedAttr value, RankedTensorType type, StringRef name) {
  std::string unique = name.empty() ? "weight" : name.str();
  for (unsigned suffix = 0; !recipeNames.insert(unique).second;)
    unique = name.str() + "_" + std::to_string(suffix++);
  OpBuilder at(main);
  Location where = builder.getLocation();
  auto recipe = ds::RecipeOp::create(at, where, unique);
  at.createBlock(&recipe.getBody());
  Value stored;
  if (auto range = dyn_cast<RangeAttr>(value))
    stored = ds::SourceOp::create(at, where, type, range.getFile(), static_cast<int64_t>(range.getOffset()),
                                  static_cast<int64_t>(range.getLength()));
  else // elements of varint fields are no range of the file
    stored = ds::ConstantOp::create(at, where, cast<ElementsAttr>(value));
  ds::YieldOp::create(at, where, ValueRange{stored});
  Value result = builder.weight(FlatSymbolRefAttr::get(module.getContext(), unique), type);
  result.getDefiningOp()->setAttr(ds::valueNameAttr, builder.getBuilder().getStrArrayAttr({name}));
  return result;
}

void Conversion::dropUnusedRecipes() {
  llvm::StringSet<> used;
  main.walk([&](ds::WeightOp weight) { used.insert(weight.getRecipe()); });
  for (auto recipe : llvm::make_early_inc_range(module.getOps<ds::RecipeOp>()))
    if (!used.contains(recipe.getSymName()))
      recipe.erase();
}

} // namespace deepstride::onnx
