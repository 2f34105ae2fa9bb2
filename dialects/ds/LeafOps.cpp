// Constants, weights, recipes, symbolic shapes.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/RecipeOps.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

bool ConstantOp::isPointwise() { return false; } // it has no operand to stand beside

bool IotaOp::isPointwise() { return false; }

// The loops of a region that counts could not be merged.
bool IotaOp::joinsRegions() { return false; }

LogicalResult ConstantOp::inferResults(Inference &inference) {
  auto type = dyn_cast<RankedTensorType>(getValue().getShapedType());
  if (!type)
    return inference.error("expects a ranked tensor value");
  TensorFacts facts = factsOfType(type, "");
  std::optional<SizeVector> contents;
  auto dense = dyn_cast<DenseElementsAttr>(getValue());
  if (dense && static_cast<size_t>(type.getNumElements()) <= Inference::contentsLimit) {
    if (isa<IntegerType>(type.getElementType())) {
      contents.emplace();
      bool isUnsigned = type.getElementType().isInteger(1) || type.getElementType().isUnsignedInteger();
      for (APInt value : dense.getValues<APInt>()) {
        if (isUnsigned && value.getActiveBits() > 63) { // no size
          contents.reset();
          break;
        }
        contents->push_back(isUnsigned ? SizeExpr(static_cast<int64_t>(value.getZExtValue()))
                                       : SizeExpr(value.getSExtValue()));
      }
    } else if (type.getNumElements() <= 8) {
      // Exporters compute some sizes in float; whole numbers take part in shape arithmetic.
      contents.emplace();
      for (APFloat value : dense.getValues<APFloat>()) {
        APSInt integer(64, /*isUnsigned=*/false);
        bool exact = false;
        if (value.isNegZero() || value.convertToInteger(integer, APFloat::rmTowardZero, &exact) != APFloat::opOK ||
            !exact) {
          contents.reset();
          break;
        }
        contents->push_back(SizeExpr(integer.getSExtValue()));
      }
    }
  }
  inference.addResult(type.getElementType(), facts.sizes, std::move(contents));
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto recipe = symbols.lookupNearestSymbolFrom<RecipeOp>(*this, getRecipeAttr());
  if (!recipe)
    return emitOpError("C1: '") << getRecipe() << "' is no ds.recipe";
  if (recipe.getYielded().getType() != getType())
    return emitOpError("C2: expects the recipe's type ") << recipe.getYielded().getType() << ", found " << getType();
  return success();
}

Value RecipeOp::getYielded() { return cast<YieldOp>(getBody().front().back()).getOperand(0); }

LogicalResult RecipeOp::verifyRegions() {
  Block &block = getBody().front();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  auto type = yield && yield.getNumOperands() == 1 ? dyn_cast<RankedTensorType>(yield.getOperand(0).getType())
                                                   : RankedTensorType();
  if (!type || !type.hasStaticShape())
    return emitOpError("C1: expects the region to yield one statically shaped tensor");
  for (Operation &op : block.without_terminator())
    if (!isRecipeOp(&op))
      return op.emitOpError("C2: is not an op that a recipe can evaluate");
  return success();
}

bool deepstride::isRecipeOp(Operation *op) {
  auto isStatic = [](Type type) {
    auto ranked = dyn_cast<RankedTensorType>(type);
    return ranked && ranked.hasStaticShape() && ranked.getElementType().isIntOrFloat();
  };
  if (!llvm::all_of(op->getResultTypes(), isStatic) || !llvm::all_of(op->getOperandTypes(), isStatic))
    return false;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return isa<DenseElementsAttr>(constant.getValue());
  if (isa<SourceOp>(op))
    return true;
  if (auto gather = dyn_cast<GatherOp>(op); gather && gather.getScales())
    return false; // rows would be stored as floats
  auto element = dyn_cast<PerElement>(op);
  bool isPointwise = element && element.isPointwise();
  // Sums of integers are the same in any order.
  auto reduction = dyn_cast<ReduceOp>(op);
  bool isExactSum = reduction && reduction.getKind() == ReduceKind::sum &&
                    isa<IntegerType>(cast<RankedTensorType>(op->getResult(0).getType()).getElementType());
  if (!isPointwise && !isExactSum &&
      !isa<TransposeOp, ConcatOp, ReshapeOp, SliceOp, GatherOp, PackOp, QuantizeWeightOp>(op))
    return false;
  auto type = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  if (isPointwise && !isa<BroadcastOp, BitcastOp>(op) && isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 8)
    return false; // kernels round to narrow floats, packaging does not
  auto isNumber = [](Attribute size) { return isa<IntegerAttr>(size); };
  auto sized = dyn_cast<SizedByAttributes>(op);
  return llvm::all_of(sized ? sized.sizeAttributes() : ArrayRef<StringLiteral>(), [&](StringRef name) {
    Attribute given = op->getAttr(name);
    auto list = dyn_cast_if_present<ArrayAttr>(given);
    return list ? llvm::all_of(list, isNumber) : !given || isNumber(given);
  });
}

LogicalResult SourceOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError("C1: expects a static result type");
  unsigned bits = type.getElementTypeBitWidth();
  int64_t bytes = type.getNumElements() * ((bits + 7) / 8);
  if (static_cast<int64_t>(getLength()) != bytes)
    return emitOpError("C1: expects a length of ") << bytes << " bytes for " << type << ", found " << getLength();
  if (static_cast<int64_t>(getOffset()) < 0)
    return emitOpError("C2: expects an offset that is not negative, found ") << static_cast<int64_t>(getOffset());
  return success();
}

LogicalResult ShapeOp::inferResults(Inference &inference) {
  auto sizes = inference.sizesOf(getValues(), "C1: values");
  if (!sizes)
    return failure();
  // The element type and rank are the op's own: a shape may be i32 or a scalar.
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type)
    return inference.error("expects a ranked tensor result");
  TensorFacts own = factsOfType(type, "");
  if (product(own.sizes) != SizeExpr(static_cast<int64_t>(sizes->size())))
    return inference.error("C2: expects as many values as elements");
  // The text does not say how wide an input is, but elements of wide ones do not get here.
  for (SizeExpr &size : *sizes)
    if (const SizeAtom *atom = size.asAtom();
        atom && atom->kind() == SizeAtom::Kind::Element && type.getElementType().isInteger(32))
      size = SizeExpr::element(std::string(atom->name()), atom->index(), 32);
  inference.addResult(type.getElementType(), own.sizes, *sizes);
  return success();
}

LogicalResult IotaOp::inferResults(Inference &inference) {
  auto sizes = inference.sizesOf(getShape(), "C2: shape");
  if (!sizes)
    return failure();
  if (!inference.axis(getAxis(), static_cast<int64_t>(sizes->size())) || static_cast<int64_t>(getAxis()) < 0)
    return inference.error("C1: the axis is outside the shape");
  for (const SizeExpr &size : *sizes)
    if (failed(inference.requireAtLeast(size, 0, "C3: size")))
      return failure();
  std::optional<SizeVector> contents;
  auto count = product(*sizes).constant();
  if (sizes->size() == 1 && count && *count <= static_cast<int64_t>(Inference::contentsLimit)) {
    contents.emplace();
    for (int64_t i = 0; i < *count; ++i)
      contents->push_back(i);
  }
  inference.addResult(IntegerType::get(getContext(), 64), *sizes, std::move(contents));
  return success();
}

LogicalResult EmptyOp::inferResults(Inference &inference) {
  auto sizes = inference.sizesOf(getShape(), "C1: shape");
  if (!sizes)
    return failure();
  for (const SizeExpr &size : *sizes)
    if (failed(inference.requireAtLeast(size, 0, "C2: size")))
      return failure();
  if (!getElement().isIntOrFloat())
    return inference.error("C3: the element type is no integer or float");
  inference.addResult(getElement(), *sizes);
  return success();
}
