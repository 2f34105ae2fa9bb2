#include "passes/optimization/IntegerRanges.h"

using namespace mlir;

namespace deepstride {

static std::optional<IntegerRange> ofType(Type element) {
  if (element.isInteger(1))
    return IntegerRange{0, 1};
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || integer.getWidth() > 16)
    return std::nullopt;
  int64_t values = int64_t(1) << integer.getWidth();
  return integer.isUnsigned() ? IntegerRange{0, values - 1} : IntegerRange{-values / 2, values / 2 - 1};
}

/// Of floats that are whole numbers.
static std::optional<IntegerRange> ofFloats(DenseFPElementsAttr floats) {
  std::optional<IntegerRange> range;
  for (const APFloat &number : floats.getValues<APFloat>()) {
    APSInt whole(32, /*isUnsigned=*/false);
    bool isExact;
    if (number.convertToInteger(whole, APFloat::rmTowardZero, &isExact) != APFloat::opOK)
      return std::nullopt;
    IntegerRange one{whole.getSExtValue(), whole.getSExtValue()};
    range = range ? range->with(one) : one;
    if (floats.isSplat())
      break;
  }
  return range;
}

static std::optional<IntegerRange> ofConstant(ds::ConstantOp op) {
  if (auto floats = dyn_cast<DenseFPElementsAttr>(op.getValue()); floats && !floats.empty())
    return ofFloats(floats);
  auto dense = dyn_cast<DenseIntElementsAttr>(op.getValue());
  if (!dense || dense.empty())
    return std::nullopt;
  bool isUnsigned = dense.getElementType().isUnsignedInteger() || dense.getElementType().isInteger(1);
  std::optional<IntegerRange> range;
  for (const APInt &number : dense.getValues<APInt>()) {
    if (number.getActiveBits() > 62 && (isUnsigned || number.getSignificantBits() > 62))
      return std::nullopt;
    int64_t one = isUnsigned ? static_cast<int64_t>(number.getZExtValue()) : number.getSExtValue();
    range = range ? range->with({one, one}) : IntegerRange{one, one};
    if (dense.isSplat())
      break;
  }
  return range;
}

/// Of what the element type holds: what leaves it wraps around, or is rounded, and may be anything then.
static std::optional<IntegerRange> within(IntegerRange range, Type element) {
  if (element.isF32() || element.isF64())
    return range.fits(25, false) ? std::optional(range) : std::nullopt;
  auto integer = dyn_cast<IntegerType>(element);
  bool fits = integer && integer.getWidth() > 1 && integer.getWidth() <= 62 &&
              range.fits(integer.getWidth(), integer.isUnsigned());
  return fits ? std::optional(range) : ofType(element);
}

std::optional<IntegerRange> IntegerRanges::of(Value value) {
  auto [place, isNew] = known.try_emplace(value, std::nullopt); // a cycle, which only invalid IR has, ends here
  if (!isNew)
    return place->second;
  auto found = compute(value);
  known[value] = found;
  return found;
}

std::optional<IntegerRange> IntegerRanges::ofBinary(ds::BinaryOp op) {
  auto x = of(op.getLhs()), y = of(op.getRhs());
  if (!x || !y)
    return std::nullopt;
  // Factors and terms that pass 2^30 could leave 64 bits after a few ops.
  for (IntegerRange range : {*x, *y})
    if (!range.fits(31, false))
      return std::nullopt;
  switch (op.getKind()) {
  case ds::BinaryKind::add: return IntegerRange{x->low + y->low, x->high + y->high};
  case ds::BinaryKind::sub: return IntegerRange{x->low - y->high, x->high - y->low};
  case ds::BinaryKind::mul: {
    auto [low, high] = std::minmax({x->low * y->low, x->low * y->high, x->high * y->low, x->high * y->high});
    return IntegerRange{low, high};
  }
  case ds::BinaryKind::bit_and:
    // No bit that one of them lacks, where that has no sign.
    if (x->low < 0 && y->low < 0)
      return std::nullopt;
    return IntegerRange{0, x->low < 0 ? y->high : y->low < 0 ? x->high : std::min(x->high, y->high)};
  case ds::BinaryKind::shift_right:
    return x->low < 0 || y->low < 0 ? std::nullopt : std::optional(IntegerRange{0, x->high});
  case ds::BinaryKind::min: return IntegerRange{std::min(x->low, y->low), std::min(x->high, y->high)};
  case ds::BinaryKind::max: return IntegerRange{std::max(x->low, y->low), std::max(x->high, y->high)};
  default: return std::nullopt;
  }
}

std::optional<IntegerRange> IntegerRanges::compute(Value value) {
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_if_present<ds::ConstantOp>(op)) {
    auto range = ofConstant(constant);
    return range && isa<FloatType>(element) ? within(*range, element) : range;
  }
  if (auto weight = dyn_cast_if_present<ds::WeightOp>(op)) {
    auto recipe = symbols.lookup<ds::RecipeOp>(weight.getRecipe());
    return recipe ? of(recipe.getYielded()) : ofType(element);
  }
  std::optional<IntegerRange> range;
  if (auto cast = dyn_cast_if_present<ds::CastOp>(op)) {
    range = of(cast.getInput());
  } else if (auto sum = dyn_cast_if_present<ds::BinaryOp>(op)) {
    range = ofBinary(sum);
  } else if (isa_and_present<ds::ReshapeOp, ds::TransposeOp, ds::BroadcastOp, ds::SliceOp, ds::ConcatOp, ds::PadOp>(
                 op)) {
    // What they make are elements of their operands; other operands than those of this type say where.
    for (Value operand : op->getOperands()) {
      if (mlir::cast<RankedTensorType>(operand.getType()).getElementType() != element)
        continue;
      auto one = of(operand);
      if (!one)
        return ofType(element);
      range = range ? range->with(*one) : one;
    }
  }
  return range ? within(*range, element) : ofType(element);
}

} // namespace deepstride
