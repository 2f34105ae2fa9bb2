// Recognizes shape arithmetic. A tensor counts when the size analysis knows all its elements; it becomes elements where
// they are numbers and size expressions where they are not. Folding itself is FoldShapes.cpp.
#include "passes/graph/ShapeArithmetic.h"

#include "dialects/ds/Contents.h"

using namespace mlir;

namespace deepstride {

/// A list of sizes longer than this is data, which a kernel computes faster than it reads expressions.
static constexpr size_t symbolicLimit = 64;

static DenseElementsAttr toElements(RankedTensorType type, ArrayRef<SizeExpr> contents) {
  Type element = type.getElementType();
  SmallVector<Attribute> values;
  for (const SizeExpr &size : contents) {
    int64_t value = *size.constant();
    if (auto integer = dyn_cast<IntegerType>(element)) {
      unsigned width = integer.getWidth();
      bool isUnsigned = integer.isUnsigned() || width == 1;
      if (width < 64 && !(isUnsigned ? llvm::isUIntN(width, value) : llvm::isIntN(width, value)))
        return {}; // wraps at run time
      values.push_back(IntegerAttr::get(element, APInt(width, static_cast<uint64_t>(value), !isUnsigned)));
      continue;
    }
    auto format = dyn_cast<FloatType>(element);
    if (!format)
      return {};
    APFloat number(format.getFloatSemantics());
    if (number.convertFromAPInt(APInt(64, static_cast<uint64_t>(value), /*isSigned=*/true), /*IsSigned=*/true,
                                APFloat::rmNearestTiesToEven) != APFloat::opOK)
      return {}; // the type rounds; the arithmetic that led here may have rounded elsewhere
    values.push_back(FloatAttr::get(element, number));
  }
  return DenseElementsAttr::get(type, values);
}

std::optional<KnownValue> findKnownValue(Operation *op, const SizeAnalysis &analysis) {
  if (!isa<ds::ResultInference>(op) || op->getNumResults() != 1 || isa<ds::ConstantOp, ds::IotaOp>(op) ||
      isa<ds::RecipeOp>(op->getParentOp()))
    return std::nullopt;
  const TensorFacts *facts = analysis.lookup(op->getResult(0));
  if (!facts || !facts->elementType || !isExact(*facts))
    return std::nullopt; // a kernel wraps, and divides by 0, as the run has it
  RankedTensorType type = facts->type();
  if (!type.hasStaticShape() || type.getNumElements() != static_cast<int64_t>(facts->contents->size()))
    return std::nullopt;
  int64_t bytes = type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  KnownValue known;
  if (llvm::all_of(*facts->contents, [](const SizeExpr &size) { return size.constant().has_value(); })) {
    // Whole numbers need not wrap where integers do: a function of constants has the bits that a kernel computes.
    auto element = dyn_cast<ds::PerElement>(op);
    if (bytes <= ds::ConstantOp::byteLimit && element && element.isPointwise())
      known.elements = evaluateConstants(op);
    if (bytes <= ds::ConstantOp::byteLimit && !known.elements)
      known.elements = toElements(type, *facts->contents);
  } else if (!isa<ds::ShapeOp>(op) && facts->contents->size() <= symbolicLimit &&
             (facts->elementType.isInteger(64) || facts->elementType.isInteger(32))) {
    known.sizes = toAttribute(op->getContext(), *facts->contents);
  }
  return known.elements || known.sizes ? std::optional(known) : std::nullopt;
}

ArrayRef<StringLiteral> sizeAttributes(Operation *op) {
  auto sized = dyn_cast<ds::SizedByAttributes>(op);
  return sized ? sized.sizeAttributes() : ArrayRef<StringLiteral>();
}

LogicalResult rewriteSizes(Operation *op, const llvm::StringMap<SizeExpr> &bindings) {
  for (StringRef name : sizeAttributes(op)) {
    SizeVector sizes;
    Attribute given = op->getAttr(name);
    if (!given) // one that may be missing
      continue;
    auto list = dyn_cast<ArrayAttr>(given);
    for (Attribute attribute : list ? list.getValue() : ArrayRef(given)) {
      auto text = dyn_cast<StringAttr>(attribute);
      auto size = text ? SizeExpr::parse(text.getValue(), &bindings) : sizeFromAttribute(attribute);
      if (!size)
        return op->emitOpError("'") << name << "' holds a text that is no size expression";
      sizes.push_back(*size);
    }
    op->setAttr(name, list ? Attribute(toAttribute(op->getContext(), sizes)) : toAttribute(op->getContext(), sizes[0]));
  }
  return success();
}

} // namespace deepstride
