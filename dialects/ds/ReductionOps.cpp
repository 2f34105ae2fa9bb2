// Shape rules of reductions, normalizations and their kin.
#include "dialects/ds/Contents.h"
#include "dialects/ds/DsDialect.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

static LogicalResult requireFloat(Inference &inference) {
  if (!isa<FloatType>(inference.operand(0).elementType))
    return inference.error("C1: the element type must be a float");
  return success();
}

static LogicalResult requireAxis(Inference &inference, int64_t axis, StringRef label) {
  int64_t rank = inference.operand(0).rank();
  if (axis < 0 || axis >= rank)
    return inference.error(label + ": the axis " + Twine(axis) + " is outside rank " + Twine(rank));
  return success();
}

static SizeVector reducedSizes(ArrayRef<SizeExpr> sizes, ArrayRef<int64_t> axes, bool keep) {
  SizeVector result;
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(axis));
    if (!reduced)
      result.push_back(size);
    else if (keep)
      result.push_back(1);
  }
  return result;
}

/// The sum, product or extremum of all elements.
static std::optional<SizeExpr> reduced(ReduceKind kind, ArrayRef<SizeExpr> elements, Type type) {
  if (kind == ReduceKind::sum || kind == ReduceKind::prod) {
    std::optional<SizeExpr> result = SizeExpr(kind == ReduceKind::prod);
    for (const SizeExpr &element : elements) {
      result =
          kind == ReduceKind::sum ? SizeExpr::exactSum(*result, element) : SizeExpr::exactProduct(*result, element);
      result = kept(result, type, /*mayBeMinusZero=*/kind == ReduceKind::prod);
      if (!result || isTooLong(*result))
        return std::nullopt;
    }
    return result;
  }
  if ((kind != ReduceKind::max && kind != ReduceKind::min) || elements.empty())
    return std::nullopt;
  std::optional<SizeExpr> best;
  for (const SizeExpr &element : elements) {
    auto value = settled(element, type);
    if (!value)
      return std::nullopt;
    best = !best ? value : kind == ReduceKind::max ? SizeExpr::max(*best, *value) : SizeExpr::min(*best, *value);
    if (isTooLong(*best))
      return std::nullopt;
  }
  return best;
}

LogicalResult ReduceOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  ArrayRef<int64_t> axes = getAxes();
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] < 0 || axes[i] >= input.rank() || (i > 0 && axes[i] <= axes[i - 1]))
      return inference.error("C1: the axes must be sorted, unique and inside rank " + Twine(input.rank()));
  bool ordered = getKind() == ReduceKind::max || getKind() == ReduceKind::min;
  if (input.elementType.isInteger(1) && !ordered)
    return inference.error("C2: " + stringifyReduceKind(getKind()) + " is not defined for i1");
  std::optional<SizeVector> contents;
  if (isTracked(input) && axes.size() == input.sizes.size() && !input.elementType.isInteger(1))
    if (auto value = reduced(getKind(), *input.contents, input.elementType))
      contents = SizeVector{*value};
  inference.addResult(input.elementType, reducedSizes(input.sizes, axes, getKeepDims()), std::move(contents));
  return success();
}

LogicalResult ArgReduceOp::inferResults(Inference &inference) {
  if (getKind() != ReduceKind::max && getKind() != ReduceKind::min)
    return inference.error("C1: the kind must be max or min");
  if (failed(requireAxis(inference, getAxis(), "C2")))
    return failure();
  inference.addResult(IntegerType::get(getContext(), 64),
                      reducedSizes(inference.operand(0).sizes, {static_cast<int64_t>(getAxis())}, getKeepDims()));
  return success();
}

LogicalResult SoftmaxOp::inferResults(Inference &inference) {
  if (failed(requireFloat(inference)) || failed(requireAxis(inference, getAxis(), "C2")))
    return failure();
  inference.addResult(inference.operand(0).elementType, inference.operand(0).sizes);
  return success();
}

LogicalResult QuantizeRowsOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (!input.elementType.isF32() && !input.elementType.isF64())
    return inference.error("C1: the element type must be f32 or f64");
  if (input.rank() < 1)
    return inference.error("C2: the operand must have an axis");
  SizeVector scales = input.sizes;
  scales.back() = 1;
  inference.addResult(IntegerType::get(getContext(), 8, IntegerType::Unsigned), input.sizes);
  inference.addResult(input.elementType, scales);
  return success();
}

LogicalResult RunningStatisticOp::inferResults(Inference &inference) {
  if (failed(requireFloat(inference)))
    return failure();
  double momentum = getMomentum().convertToDouble();
  if (!(momentum >= 0 && momentum <= 1))
    return inference.error("C3: the momentum must be at least 0 and at most 1, found " + std::to_string(momentum));
  for (unsigned i = 0; i < 2; ++i)
    inference.addResult(inference.operand(1).elementType, inference.operand(1).sizes);
  return success();
}

/// Scale and bias may have any shape that broadcasts to the operand without enlarging it, also where its size is 1.
static LogicalResult requireAffine(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  for (unsigned i = 1; i < inference.operandCount(); ++i) {
    const TensorFacts &parameter = inference.operand(i);
    if (parameter.elementType != input.elementType || parameter.rank() > input.rank())
      return inference.error("C3: scale and bias must have the operand's element type and at most its rank");
    if (failed(inference.requireBroadcastTo(input.sizes, parameter.sizes, "C3: scale and bias")))
      return failure();
  }
  return success();
}

LogicalResult LayerNormOp::inferResults(Inference &inference) {
  if (failed(requireFloat(inference)) || failed(requireAxis(inference, getAxis(), "C2")) ||
      failed(requireAffine(inference)))
    return failure();
  inference.addResult(inference.operand(0).elementType, inference.operand(0).sizes);
  return success();
}

LogicalResult RmsNormOp::inferResults(Inference &inference) {
  if (failed(requireFloat(inference)) || failed(requireAxis(inference, getAxis(), "C2")) ||
      failed(requireAffine(inference)))
    return failure();
  inference.addResult(inference.operand(0).elementType, inference.operand(0).sizes);
  return success();
}

LogicalResult CumulativeOp::inferResults(Inference &inference) {
  if (failed(requireAxis(inference, getAxis(), "C1")))
    return failure();
  if (getKind() != ReduceKind::sum && getKind() != ReduceKind::prod)
    return inference.error("C2: the kind must be sum or prod");
  if (inference.operand(0).elementType.isInteger(1))
    return inference.error("C3: " + stringifyReduceKind(getKind()) + " is not defined for i1");
  inference.addResult(inference.operand(0).elementType, inference.operand(0).sizes);
  return success();
}

LogicalResult SuppressOp::inferResults(Inference &inference) {
  const TensorFacts &scores = inference.operand(0);
  for (unsigned number = 0; number < getNumOperands(); ++number) {
    const TensorFacts &facts = inference.operand(number);
    bool isMost = number == 3;
    if (isMost ? !facts.elementType.isSignlessInteger(64)
               : !isa<FloatType>(facts.elementType) || facts.elementType != scores.elementType)
      return inference.error("C1: scores, ends, 'overlap' and 'least' must be of one float type, 'most' i64");
    if (facts.rank() != (number < 3 ? 3 : 0))
      return inference.error("C2: scores and ends must have three axes, the other operands none");
  }
  for (unsigned number : {1u, 2u}) {
    SizeVector expected = {scores.sizes[0], 2, scores.sizes[2]};
    for (auto [own, size] : llvm::zip_equal(inference.operand(number).sizes, expected))
      if (failed(inference.requireEqual(own, size, "C2: ends of boxes")))
        return failure();
  }
  inference.addResult(IntegerType::get(getContext(), 64), scores.sizes);
  return success();
}

LogicalResult ArgsortOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (input.rank() < 1)
    return inference.error("C1: the rank must be at least 1");
  inference.addResult(IntegerType::get(getContext(), 64), {input.sizes[0]});
  return success();
}

LogicalResult TopKOp::inferResults(Inference &inference) {
  if (failed(requireAxis(inference, getAxis(), "C1")))
    return failure();
  auto k = inference.sizesOf(getK(), "C2: k");
  if (!k || k->size() != 1)
    return inference.error("C2: k must be one size");
  SizeVector sizes = inference.operand(0).sizes;
  if (failed(inference.requireAtLeast(k->front(), 0, "C2: k")) ||
      failed(inference.requireAtLeast(sizes[getAxis()], k->front(), "k against the axis")))
    return failure();
  sizes[getAxis()] = k->front();
  inference.addResult(inference.operand(0).elementType, sizes);
  inference.addResult(IntegerType::get(getContext(), 64), sizes);
  return success();
}
