#include "passes/optimization/HalfRange.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace deepstride {

static std::string refuse(const HostTensor &elements, const Twine &name) {
  constexpr float beyond = 65520; // what is less is rounded to 65504
  float greatest = 0;
  for (float element : ArrayRef(reinterpret_cast<const float *>(elements.data), static_cast<size_t>(elements.count())))
    if (std::isfinite(element))
      greatest = std::max(greatest, std::fabs(element));
  if (greatest < beyond)
    return "";
  return llvm::formatv("its weight{0} has an element of magnitude {1:e3}; f16 ends at 65504", name, greatest).str();
}

std::string HalfRange::refuse(Value value) {
  auto weight = value.getDefiningOp<ds::WeightOp>();
  auto constant = value.getDefiningOp<ds::ConstantOp>();
  Attribute key = weight ? Attribute(weight.getRecipeAttr()) : Attribute(constant.getValue());
  auto [found, isNew] = reasons.try_emplace(key);
  if (isNew)
    found->second =
        weight ? refuse(recipes.recipeOf(weight))
               : deepstride::refuse(HostTensor::fromAttribute(cast<DenseElementsAttr>(constant.getValue())), "");
  return found->second;
}

std::string HalfRange::refuse(ds::RecipeOp recipe) {
  auto elements = evaluator.evaluate(recipe);
  if (succeeded(elements))
    return deepstride::refuse(*elements, " '" + recipe.getSymName() + "'");
  isBroken = true;
  return "its weight cannot be read";
}

} // namespace deepstride
