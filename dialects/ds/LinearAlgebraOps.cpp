// Shape rules of products, convolutions and pooling.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/Schedule.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

/// The type in which products of such operands are summed; null where they do not go together.
static Type sumType(Type left, Type right) {
  if (isSummedWide(left) && isSummedWide(right))
    return IntegerType::get(left.getContext(), 32);
  return left == right ? left : Type();
}

int64_t MatmulOp::rowAxes() { return cast<RankedTensorType>(getType()).getRank() - 1; }
int64_t LinearOp::rowAxes() { return cast<RankedTensorType>(getType()).getRank() - 1; }
int64_t ConvOp::rowAxes() { return 2; } // images and filters

LogicalResult MatmulOp::inferResults(Inference &inference) {
  const TensorFacts &lhs = inference.operand(0), &rhs = inference.operand(1);
  if (lhs.rank() < 2 || rhs.rank() < 2 || getTranspose().size() != 2)
    return inference.error("C1: both operands must have rank 2 or more, found " + Twine(lhs.rank()) + " and " +
                           Twine(rhs.rank()));
  Type element = sumType(lhs.elementType, rhs.elementType);
  if (!element)
    return inference.error("C2: operands have different element types");
  if (getWide()) {
    if (!element.isBF16())
      return inference.error("C5: wide products have operands of bf16");
    element = Float32Type::get(getContext());
  }
  SizeExpr m = lhs.sizes[lhs.rank() - 2], k = lhs.sizes.back(), k2 = rhs.sizes[rhs.rank() - 2], n = rhs.sizes.back();
  if (getTranspose()[0])
    std::swap(m, k);
  if (getTranspose()[1])
    std::swap(k2, n);
  if (failed(inference.requireEqual(k, k2, "C3: inner sizes")))
    return failure();
  auto sizes = inference.broadcast(ArrayRef(lhs.sizes).drop_back(2), ArrayRef(rhs.sizes).drop_back(2));
  if (!sizes)
    return failure();
  sizes->push_back(m);
  sizes->push_back(n);
  inference.addResult(element, *sizes);
  return success();
}

bool LinearOp::holdsHalfBytes() {
  auto type = cast<RankedTensorType>(getWeight().getType());
  if (!getScales() || !getPanel() || getInterleave() % 2 != 0)
    return false;
  if (getInterleave() == 2 && !getWide()) // only beside rows of bf16 may pairs be of whole bytes
    return true;
  return type.getRank() == 3 && 2 * type.getDimSize(2) == static_cast<int64_t>(*getPanel() * getInterleave());
}

LogicalResult LinearOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &weight = inference.operand(1);
  bool isQuantized = static_cast<bool>(getScales());
  Type element = sumType(input.elementType, weight.elementType);
  if (isQuantized)
    element = isa<FloatType>(input.elementType) && isCode(weight.elementType) ? input.elementType : Type();
  if (getWide()) {
    bool isPair = input.elementType.isBF16() && (weight.elementType.isBF16() || (isQuantized && element));
    if (!isPair && !(input.elementType.isF32() && weight.elementType.isF16()))
      return inference.error("C9: wide products have operands of bf16, rows of bf16 and codes, or rows of f32 and a "
                             "weight of f16");
    element = Float32Type::get(getContext());
  }
  if (!element)
    return inference.error(isQuantized ? "C1: with scales, the operand must be a float and the weight i8 or i4"
                                       : "C1: operand and weight have different element types");
  int64_t interleave = getInterleave();
  if (interleave < 1 || (interleave > 1 && !getPanel()))
    return inference.error("C5: only packed weights are interleaved, by a positive number");
  if (weight.rank() != (getPanel() ? 3 : 2) || input.rank() < 1 || getPanel().has_value() != getColumns().has_value())
    return inference.error("C4: the weight must have rank 2, or 3 with a panel and columns");
  int64_t bytesInterleaved = holdsHalfBytes() ? interleave / 2 : interleave; // two codes in a byte
  if (getPanel() && !weight.sizes[2].isConstant(*getPanel() * bytesInterleaved))
    return inference.error("C4: the weight's last size must be the panel, times what is interleaved");
  if (getPanel() && getTransposed())
    return inference.error("C4: a packed weight cannot be transposed");
  SizeExpr k = weight.sizes[getPanel() || getTransposed() ? 1 : 0];
  SizeExpr n = getPanel() ? SizeExpr(*getColumns()) : weight.sizes[getTransposed() ? 0 : 1];
  SizeExpr depth = getPanel() ? SizeExpr::ceilDiv(input.sizes.back(), interleave) : input.sizes.back();
  if ((getDepth() && failed(inference.requireEqual(input.sizes.back(), *getDepth(), "C2: inner sizes"))) ||
      failed(inference.requireEqual(depth, k, "C2: inner sizes")))
    return failure();
  unsigned index = 2;
  if (getBias()) {
    const TensorFacts &bias = inference.operand(index++);
    if (bias.elementType != element || bias.rank() != 1)
      return inference.error("C3: the bias must be one axis of the result's element type");
    if (failed(inference.requireEqual(bias.sizes[0], n, "C3: bias size")))
      return failure();
  }
  if (getGroup() && (!isQuantized || static_cast<int64_t>(*getGroup()) <= 0 || *getGroup() % 2 != 0))
    return inference.error("C8: the group must be a positive, even number beside scales");
  if (getZeroPoints() && !isQuantized)
    return inference.error("C7: zero points need scales");
  SizeExpr groups = getGroup() ? SizeExpr::ceilDiv(input.sizes.back(), *getGroup()) : SizeExpr(1);
  SizeVector perGroup = {groups, n};
  if (getPanel())
    perGroup = {weight.sizes[0], groups, SizeExpr(*getPanel())};
  auto check = [&](Type expected, StringRef what) -> LogicalResult {
    const TensorFacts &facts = inference.operand(index++);
    if (facts.elementType != expected || facts.rank() != static_cast<int64_t>(perGroup.size()))
      return inference.error(what + " must be one for each group and column, as the weight is packed");
    for (auto [found, size] : llvm::zip_equal(facts.sizes, perGroup))
      if (failed(inference.requireEqual(found, size, what)))
        return failure();
    return success();
  };
  if (isQuantized && failed(check(element, "C6: scales")))
    return failure();
  if (getZeroPoints() && failed(check(IntegerType::get(getContext(), 8), "C7: zero points")))
    return failure();
  SizeVector sizes = input.sizes;
  sizes.back() = n;
  inference.addResult(element, sizes);
  return success();
}

LogicalResult PackOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (input.rank() != 2)
    return inference.error("C1: the operand must have rank 2");
  int64_t panel = getPanel(), interleave = getInterleave();
  if (panel <= 0 || interleave <= 0 || panel > (1 << 20) || interleave > (1 << 20))
    return inference.error("C2: panel and interleave must be positive, and at most 2^20");
  bool isHalfByte = input.elementType.isInteger(4);
  if (isHalfByte && interleave % 2 != 0)
    return inference.error("C3: integers of 4 bits must be interleaved by an even number, found " + Twine(interleave));
  inference.addResult(isHalfByte ? IntegerType::get(getContext(), 8) : input.elementType,
                      {SizeExpr::ceilDiv(input.sizes[1], panel), SizeExpr::ceilDiv(input.sizes[0], interleave),
                       panel * (isHalfByte ? interleave / 2 : interleave)});
  return success();
}

LogicalResult QuantizeWeightOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (input.rank() != 2 || !input.elementType.isF32())
    return inference.error("C1: the operand must be f32 and have rank 2");
  int64_t bits = getBits(), group = getGroup();
  if (bits != 4 && bits != 8)
    return inference.error("C2: expected 4 or 8 bits, found " + Twine(bits));
  if (group < 0)
    return inference.error("C3: the group must not be negative, found " + Twine(group));
  if (getPart() == QuantizedPart::zero_points && !getAsymmetric())
    return inference.error("C4: only the asymmetric scheme has zero points");
  if (getTriangle()) {
    const TensorFacts &triangle = inference.operand(1);
    if (getPart() != QuantizedPart::codes || triangle.rank() != 2 || !triangle.elementType.isF32() ||
        triangle.sizes[0] != input.sizes[0] || triangle.sizes[1] != input.sizes[0])
      return inference.error("C5: the triangle must be f32, have as many rows and columns as the weight has rows, and "
                             "stand beside codes");
  }
  auto integer = [&](int64_t width) { return IntegerType::get(getContext(), static_cast<unsigned>(width)); };
  SizeExpr groups = group ? SizeExpr::ceilDiv(input.sizes[0], group) : SizeExpr(1);
  switch (getPart()) {
  case QuantizedPart::codes: inference.addResult(integer(bits), input.sizes); break;
  case QuantizedPart::scales: inference.addResult(input.elementType, {groups, input.sizes[1]}); break;
  case QuantizedPart::zero_points: inference.addResult(integer(8), {groups, input.sizes[1]}); break;
  }
  return success();
}

/// (size + pads - dilation * (kernel - 1) - 1) / stride + 1
static SizeExpr windowCount(const SizeExpr &size, int64_t padding, int64_t dilation, const SizeExpr &kernel,
                            int64_t stride) {
  SizeExpr span = size + SizeExpr(padding) - (kernel - SizeExpr(1)) * SizeExpr(dilation) - SizeExpr(1);
  return SizeExpr::floorDiv(span, stride) + SizeExpr(1);
}

static bool allAtLeast(ArrayRef<int64_t> values, int64_t bound) {
  return llvm::all_of(values, [&](int64_t value) { return value >= bound && value < (int64_t(1) << 31); });
}

bool ConvOp::hasFewFilters() {
  int64_t filters = cast<RankedTensorType>(getWeight().getType()).getDimSize(0);
  return !ShapedType::isDynamic(filters) && filters <= 2 * static_cast<int64_t>(getGroups());
}

LogicalResult ConvOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &weight = inference.operand(1);
  if (input.rank() < 3 || input.rank() != weight.rank())
    return inference.error("C1: operand and weight must have one rank of at least 3");
  Type element = sumType(input.elementType, weight.elementType);
  if (!element)
    return inference.error("C2: operand and weight have different element types");
  if (getWide()) {
    if (!element.isBF16())
      return inference.error("C6: wide convolutions have operands of bf16");
    element = Float32Type::get(getContext());
  }
  size_t spatial = static_cast<size_t>(input.rank() - 2);
  if (getStrides().size() != spatial || getDilations().size() != spatial || getPads().size() != 2 * spatial ||
      !allAtLeast(getStrides(), 1) || !allAtLeast(getDilations(), 1) || !allAtLeast(getPads(), 0) ||
      static_cast<int64_t>(getGroups()) < 1)
    return inference.error("C3: strides, dilations, pads and groups must be legal and match " + Twine(spatial) +
                           " spatial axes");
  int64_t groups = getGroups();
  if (failed(inference.requireEqual(input.sizes[1], weight.sizes[1] * SizeExpr(groups), "C4: channels")))
    return failure();
  if (auto filters = weight.sizes[0].constant(); filters && *filters % groups != 0)
    return inference.error("C4: " + Twine(*filters) + " filters are no multiple of " + Twine(groups) + " groups");
  if (failed(inference.requireEqual(SizeExpr::mod(weight.sizes[0], groups), 0, "C4: filters of each group")))
    return failure();
  if (getBias()) {
    const TensorFacts &bias = inference.operand(2);
    if (bias.rank() != 1 || bias.elementType != element)
      return inference.error("C5: the bias must be one axis of the result's element type");
    if (failed(inference.requireEqual(bias.sizes[0], weight.sizes[0], "C5: bias size")))
      return failure();
  }
  SizeVector sizes = {input.sizes[0], weight.sizes[0]};
  for (size_t i = 0; i < spatial; ++i) {
    sizes.push_back(windowCount(input.sizes[2 + i], getPads()[i] + getPads()[spatial + i], getDilations()[i],
                                weight.sizes[2 + i], getStrides()[i]));
    if (failed(inference.requireAtLeast(sizes.back(), 0, "C3: output size")))
      return failure();
  }
  inference.addResult(element, sizes);
  return success();
}

LogicalResult PoolOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (input.rank() < 3)
    return inference.error("C1: the operand must have rank 3 or more");
  size_t spatial = static_cast<size_t>(input.rank() - 2);
  if (getKernel().size() != spatial || getStrides().size() != spatial || getDilations().size() != spatial ||
      getPads().size() != 2 * spatial || !allAtLeast(getKernel(), 1) || !allAtLeast(getStrides(), 1) ||
      !allAtLeast(getDilations(), 1) || !allAtLeast(getPads(), 0) || static_cast<int64_t>(getExponent()) < 1)
    return inference.error("C2: kernel, strides, dilations and pads must be legal and match " + Twine(spatial) +
                           " spatial axes");
  SizeVector sizes = {input.sizes[0], input.sizes[1]};
  for (size_t i = 0; i < spatial; ++i) {
    SizeExpr padding = getPads()[i] + getPads()[spatial + i];
    SizeExpr span = input.sizes[2 + i] + padding - SizeExpr((getKernel()[i] - 1) * getDilations()[i] + 1);
    SizeExpr count = SizeExpr::floorDiv(span, getStrides()[i]) + SizeExpr(1);
    if (getCeil()) {
      count = SizeExpr::ceilDiv(span, getStrides()[i]) + SizeExpr(1);
      // A window that would start in the right padding is dropped.
      SizeExpr lastStart = (count - SizeExpr(1)) * SizeExpr(getStrides()[i]);
      SizeExpr inside = SizeExpr::lt(lastStart, input.sizes[2 + i] + SizeExpr(getPads()[i]));
      count = count - (SizeExpr(1) - inside);
    }
    if (failed(inference.requireAtLeast(count, 0, "C2: output size")))
      return failure();
    sizes.push_back(count);
  }
  inference.addResult(input.elementType, sizes);
  return success();
}
