#include "passes/optimization/StoredCodes.h"

#include "passes/graph/Matching.h"

using namespace mlir;

namespace deepstride {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static DenseFPElementsAttr numbersOf(Value value) {
  auto constant = value ? value.getDefiningOp<ds::ConstantOp>() : ds::ConstantOp();
  return constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
}

bool StoredCodes::isSymmetric() const {
  if (!zeroPoints)
    return offset == 0;
  DenseFPElementsAttr numbers = numbersOf(zeroPoints);
  return numbers && llvm::all_of(numbers.getValues<APFloat>(), [&](const APFloat &number) {
           return number.convertToDouble() == static_cast<double>(offset);
         });
}

namespace {
/// A part of an axis: elements, and whether scales or zero points differ along it.
struct Part {
  int64_t size;
  bool varies;
};
using Axis = SmallVector<Part>;
} // namespace

/// Whether an operand of `type`, which broadcasts, has elements of its own along an axis.
static bool variesAlong(Value operand, RankedTensorType type, int64_t axis) {
  if (!operand)
    return false;
  int64_t own = axis - (type.getRank() - typeOf(operand).getRank());
  return own >= 0 && typeOf(operand).getDimSize(own) != 1;
}

/// Follows axes through reshapes that join and split them, transposes and cuts at their ends.
static std::optional<SmallVector<Axis>> follow(ArrayRef<Operation *> layout, SmallVector<Axis> axes) {
  for (Operation *op : layout) {
    auto result = typeOf(op->getResult(0));
    if (auto transpose = dyn_cast<ds::TransposeOp>(op)) {
      SmallVector<Axis> moved;
      for (int64_t axis : transpose.getPermutation())
        moved.push_back(axes[axis]);
      axes = std::move(moved);
      continue;
    }
    if (isa<ds::SliceOp>(op)) {
      // A last group may be shorter: what is cut are elements that share their scale.
      for (auto [axis, parts] : llvm::enumerate(axes)) {
        int64_t before = typeOf(op->getOperand(0)).getDimSize(static_cast<int64_t>(axis)),
                after = result.getDimSize(static_cast<int64_t>(axis));
        if (before == after)
          continue;
        bool isInGroup = parts.size() == 2 && parts[0].varies && before - after < parts[1].size;
        if (parts.empty() || parts.back().varies || (parts.size() > 1 && !isInGroup))
          return std::nullopt;
      }
      continue;
    }
    SmallVector<Part> flat;
    for (const Axis &axis : axes)
      llvm::copy_if(axis, std::back_inserter(flat), [](const Part &part) { return part.size != 1; });
    axes.clear();
    size_t next = 0;
    for (int64_t size : result.getShape()) {
      Axis axis;
      int64_t filled = 1;
      while (filled < size && next < flat.size()) {
        int64_t wanted = size / filled;
        if (size % filled != 0)
          return std::nullopt;
        Part &part = flat[next];
        axis.push_back({std::min(part.size, wanted), part.varies});
        filled *= axis.back().size;
        if (part.size % axis.back().size != 0)
          return std::nullopt;
        part.size /= axis.back().size; // what is left is for the next axis
        next += part.size == 1;
      }
      if (filled != size)
        return std::nullopt;
      axes.push_back(std::move(axis));
    }
  }
  return axes;
}

static std::nullopt_t fail(std::string &reason, const char *what) {
  reason = what;
  return std::nullopt;
}

static bool isCut(ds::SliceOp slice) {
  auto starts = sizesFromAttribute(slice.getStarts());
  return starts && llvm::all_of(*starts, [](const SizeExpr &start) { return start.isConstant(0); }) &&
         llvm::all_of(slice.getSteps(), [](int64_t step) { return step == 1; });
}

/// Finds the groups: along K, what varies comes first, and what follows shares a scale.
static bool findGroup(StoredCodes &codes, std::string &reason) {
  auto type = typeOf(codes.integers);
  SmallVector<Axis> axes;
  for (auto [axis, size] : llvm::enumerate(type.getShape())) {
    bool varies = variesAlong(codes.scales, type, static_cast<int64_t>(axis)) ||
                  variesAlong(codes.zeroPoints, type, static_cast<int64_t>(axis));
    axes.push_back({Part{size, varies}});
  }
  auto found = follow(codes.layout, axes);
  reason = "its scales are not one for each column or for each group along K";
  if (!found || found->size() != 2)
    return false;
  int64_t group = 1;
  bool isInner = true;
  for (const Part &part : llvm::reverse((*found)[0])) {
    isInner &= !part.varies;
    if (!isInner && !part.varies)
      return false;
    group *= isInner ? part.size : 1;
  }
  bool hasGroups = llvm::any_of((*found)[0], [](const Part &part) { return part.varies; });
  codes.group = hasGroups ? group : 0;
  if (hasGroups && group % 2 != 0)
    return false;
  reason.clear();
  return true;
}

bool StoredCodeReader::areBytes(const StoredCodes &codes) {
  if (!codes.zeroPoints)
    return true;
  auto fits = [&](IntegerRange range) {
    return IntegerRange{range.low - codes.offset, range.high - codes.offset}.fits(8, false);
  };
  Value value = codes.zeroPoints;
  while (isa_and_present<ds::ReshapeOp, ds::TransposeOp, ds::SliceOp, ds::BroadcastOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  if (auto cast = value.getDefiningOp<ds::CastOp>()) {
    auto range = isa<IntegerType>(typeOf(cast.getInput()).getElementType()) ? ranges.of(cast.getInput()) : std::nullopt;
    return range && fits(*range);
  }
  DenseFPElementsAttr numbers = numbersOf(value);
  return numbers && llvm::all_of(numbers.getValues<APFloat>(), [&](const APFloat &number) {
           bool isExact;
           APSInt integer(16, /*isUnsigned=*/false);
           bool isWhole = number.convertToInteger(integer, APFloat::rmTowardZero, &isExact) == APFloat::opOK && isExact;
           return isWhole && fits({integer.getSExtValue(), integer.getSExtValue()});
         });
}

std::optional<StoredCodes> StoredCodeReader::read(ds::RecipeOp recipe, std::string &reason) {
  StoredCodes result;
  Value value = recipe.getYielded();
  while (Operation *op = value.getDefiningOp()) {
    auto slice = dyn_cast<ds::SliceOp>(op);
    if (!isa<ds::ReshapeOp, ds::TransposeOp>(op) && !(slice && isCut(slice)))
      break;
    result.layout.push_back(op);
    value = op->getOperand(0);
  }
  std::reverse(result.layout.begin(), result.layout.end());
  auto product = binaryOf(value, ds::BinaryKind::mul);
  if (!product)
    return std::nullopt;
  for (unsigned side : {0U, 1U}) {
    Value codes = product->getOperand(side), zeroPoints;
    if (typeOf(codes) != typeOf(value))
      continue;
    if (auto difference = binaryOf(codes, ds::BinaryKind::sub);
        difference && typeOf(difference.getLhs()) == typeOf(codes)) {
      codes = difference.getLhs();
      zeroPoints = difference.getRhs();
    }
    auto cast = codes.getDefiningOp<ds::CastOp>();
    if (!cast || !isa<IntegerType>(typeOf(cast.getInput()).getElementType()))
      continue;
    result.integers = cast.getInput();
    result.zeroPoints = zeroPoints;
    result.scales = product->getOperand(1 - side);
    break;
  }
  if (!result.integers)
    return std::nullopt;
  auto range = ranges.of(result.integers);
  if (!range || range->high - range->low > 255 || (range->low < -128) || range->high > 255)
    return fail(reason, "its codes have more than 8 bits");
  result.bits = range->high - range->low < 16 && range->low >= -8 && range->high <= 15 ? 4 : 8;
  if (!range->fits(result.bits, false))
    result.offset = result.bits == 4 ? 8 : 128;
  if (!range->fits(result.bits, false) && !range->fits(result.bits, true))
    return fail(reason, "its codes are neither signed nor unsigned");
  if (!areBytes(result))
    return fail(reason, "its zero points are no integers of 8 bits");
  return result;
}

std::optional<StoredCodes> StoredCodeReader::readMatrix(ds::RecipeOp recipe, std::string &reason) {
  auto codes = read(recipe, reason);
  return codes && findGroup(*codes, reason) ? codes : std::nullopt;
}

} // namespace deepstride
