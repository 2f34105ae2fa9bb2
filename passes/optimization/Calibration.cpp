#include "passes/optimization/Calibration.h"

#include "passes/NamePattern.h"

#include "llvm/Support/Regex.h"

using namespace mlir;

namespace deepstride {

static std::string text(Type type) {
  std::string result;
  llvm::raw_string_ostream(result) << type;
  return result;
}

LogicalResult verifyKeep(ModuleOp module, StringRef pass, StringRef keep) {
  std::string reason = keep.empty() ? "" : reasonAgainstPattern(keep); // nothing is kept
  if (reason.empty())
    return success();
  return module.emitError() << pass << ": keep: expected a regular expression, found '" << keep << "': " << reason;
}

bool isKept(const std::string &keep, StringRef recipe, Operation *op) {
  llvm::Regex kept(keep);
  auto node = op->getLoc()->findInstanceOf<NameLoc>();
  return !keep.empty() && (kept.match(recipe) || (node && kept.match(node.getName().getValue())));
}

ProductWeight weightOf(ds::LinearOp op, const std::string &keep) {
  ProductWeight found;
  auto because = [&](const Twine &reason) {
    found.reason = reason.str();
    return found;
  };
  if (op.getScales() || op.getPanel())
    return because("it is quantized or packed already");
  // --reference=f64 computes on weights as they are stored, cast to f64.
  auto cast = op.getWeight().getDefiningOp<ds::CastOp>();
  auto weight = (cast ? cast.getInput() : op.getWeight()).getDefiningOp<ds::WeightOp>();
  if (op.getWeight().getDefiningOp<ds::ConstantOp>())
    return because("it has at most " + Twine(ds::ConstantOp::byteLimit) + " bytes");
  if (!weight)
    return because("it is no constant of the package, which is known when the package is written");
  found.weight = weight;
  found.cast = cast;
  Type type = mlir::cast<RankedTensorType>(weight.getType()).getElementType();
  Type element = mlir::cast<RankedTensorType>(op.getInput().getType()).getElementType();
  if (!type.isF32() || (cast ? !element.isF64() : !element.isF32()))
    return because("its elements are " + text(type) + ", expected f32");
  if (op.getTransposed())
    return because("it is stored transposed");
  if (isKept(keep, weight.getRecipe(), op))
    return because("'" + keep + "' matches its name or its product's");
  return found;
}

} // namespace deepstride
