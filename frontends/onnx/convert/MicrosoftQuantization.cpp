// Quantized operators of the domain com.microsoft: integer products with scales, and elementwise functions between a
// dequantization and a quantization.
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Quantized.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/Windows.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::UnaryKind;

constexpr StringLiteral domain = "com.microsoft";

/// (x - zero) * scale of operands that follow each other.
static Value dequantize(Node &n, unsigned input) {
  Value x = n.b.cast(n.in(input), n.b.f32());
  if (n.has(input + 2))
    x = n.b.sub(x, n.b.cast(single(n, input + 2), n.b.f32()));
  return n.b.mul(x, single(n, input + 1));
}

static Value quantize(Node &n, Value x, unsigned scaleInput, Type type) {
  Value scale = single(n, scaleInput), zero = n.has(scaleInput + 1) ? single(n, scaleInput + 1) : Value();
  if (!scale || (n.has(scaleInput + 1) && !zero))
    return {};
  return saturate(n, n.b.div(x, scale), zero, type);
}

static bool isByte(Node &n, unsigned input) {
  Type type = n.b.element(n.in(input));
  if (type && type.isInteger(8))
    return true;
  return n.reject("input " + Twine(input) + ": expected int8 or uint8, found " + describe(n.b.facts(n.in(input))));
}

/// A function of one operand: X, scale, zero point, scale and zero point of the result.
static Values convertUnary(Node &n, llvm::function_ref<Value(Value)> function) {
  if (!isByte(n, 0))
    return {};
  return {quantize(n, function(dequantize(n, 0)), 3, n.b.element(n.in(0)))};
}

static Values convertSigmoid(Node &n) {
  return convertUnary(n, [&](Value x) { return n.b.unary(UnaryKind::sigmoid, x); });
}

static Values convertLeakyRelu(Node &n) {
  double alpha = n.real("alpha", 0.01);
  return convertUnary(
      n, [&](Value x) { return n.b.select(n.b.binary(ds::BinaryKind::ge, x, 0.0), x, n.b.mul(x, alpha)); });
}

/// `opset` says which Softmax is meant: since 13 along one axis, before over all axes from there on. The result counts
/// whole steps of 1: as many as ONNX Runtime counts, which drops the fraction of 1 / scale.
static Values convertSoftmax(Node &n) {
  int64_t rank = n.b.rank(n.in(0));
  auto axis = n.axis(n.integer("axis", -1), rank), opset = n.requiredInteger("opset");
  constexpr int64_t alongOneAxis = 13;
  if (!axis || !opset || !isByte(n, 0))
    return {};
  Value x = dequantize(n, 0), scale = single(n, 3), zero = n.has(4) ? single(n, 4) : Value();
  if (!x || !scale || (n.has(4) && !zero))
    return {};
  Value weights;
  if (*opset >= alongOneAxis || *axis == rank - 1) {
    weights = n.b.softmax(x, *axis);
  } else {
    SizeVector sizes = n.b.sizes(x), flat(sizes.begin(), sizes.begin() + *axis);
    flat.push_back(product(ArrayRef(sizes).drop_front(*axis)));
    weights = n.b.reshape(n.b.softmax(n.b.reshape(x, flat), *axis), sizes);
  }
  Value steps = n.b.unary(UnaryKind::floor, n.b.div(n.b.scalar(n.b.f32(), 1), scale));
  return {saturate(n, n.b.mul(weights, steps), zero, n.b.element(n.in(0)))};
}

/// The mean over the spatial axes.
static Values convertGlobalAveragePool(Node &n) {
  if (!n.requireRank(0, 3))
    return {};
  int64_t rank = n.b.rank(n.in(0));
  SmallVector<int64_t> axes = n.flag("channels_last", false) ? axesFrom(1, rank - 1) : axesFrom(2, rank);
  return convertUnary(n, [&](Value x) { return n.b.reduce(ds::ReduceKind::mean, x, axes); });
}

/// The mean of each window; images may have their channels last.
static Values convertAveragePool(Node &n) {
  if (!n.requireRank(0, 3))
    return {};
  int64_t rank = n.b.rank(n.in(0));
  if (!n.flag("channels_last", false))
    return convertUnary(n, [&](Value x) { return averagePool(n, x); });
  SmallVector<int64_t> first = {0, rank - 1}, last = {0};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) {
    first.push_back(axis);
    last.push_back(axis + 1);
  }
  last.push_back(1);
  return convertUnary(n, [&](Value x) { return n.b.transpose(averagePool(n, n.b.transpose(x, first)), last); });
}

/// Scale and zero point of the result, then three operands for each tensor.
static Values convertConcat(Node &n) {
  auto axis = n.requiredInteger("axis");
  if (!axis)
    return {};
  SmallVector<Value> parts;
  for (unsigned i = 2; i + 1 < n.inputCount(); i += 3) {
    if (!isByte(n, i))
      return {};
    parts.push_back(dequantize(n, i));
  }
  auto place = parts.empty() ? std::nullopt : n.axis(*axis, n.b.rank(parts[0]));
  if (!place)
    return parts.empty() ? n.refuse("expected at least one tensor, found none") : Values();
  return {quantize(n, n.b.concat(*place, parts), 0, n.b.element(n.in(2)))};
}

static Values convertWhere(Node &n) {
  if (!isByte(n, 1) || !isByte(n, 4))
    return {};
  return {quantize(n, n.b.select(n.in(0), dequantize(n, 1), dequantize(n, 4)), 7, n.b.element(n.in(1)))};
}

/// An operand of a sum in steps of the result, and what its zero point takes off.
static std::pair<Value, Value> inSteps(Node &n, unsigned input, Value step) {
  Value ratio = n.b.div(single(n, input + 1), step), x = n.b.mul(n.b.cast(n.in(input), n.b.f32()), ratio);
  Value zero = n.has(input + 2) ? n.b.cast(single(n, input + 2), n.b.f32()) : n.b.scalar(n.b.f32(), 0);
  return {x, n.b.mul(zero, ratio)};
}

/// The zero point of the result is added before the rounding. That tells where sums lie right between two steps, which
/// those with a constant often do: constants such as 1 are half a step of a range twice as wide.
static Values convertAdd(Node &n) {
  if (!isByte(n, 0) || !isByte(n, 3))
    return {};
  Value step = single(n, 6);
  if (!step)
    return {};
  auto [a, aZero] = inSteps(n, 0, step);
  auto [b, bZero] = inSteps(n, 3, step);
  Value zero = n.has(7) ? n.b.cast(single(n, 7), n.b.f32()) : n.b.scalar(n.b.f32(), 0);
  Value fixed = n.b.sub(zero, n.b.add(aZero, bZero));
  return {saturate(n, n.b.add(a, n.b.add(b, fixed)), {}, n.b.element(n.in(0)))};
}

/// The product of the integers is exact; one factor rescales it.
static Values convertMul(Node &n) {
  if (!isByte(n, 0) || !isByte(n, 3))
    return {};
  Value exact = n.b.mul(centreByOne(n, 0, 2), centreByOne(n, 3, 5));
  Value factor = n.b.div(n.b.mul(single(n, 1), single(n, 4)), single(n, 6));
  Value zero = n.has(7) ? single(n, 7) : Value();
  if (!exact || !factor || (n.has(7) && !zero))
    return {};
  return {saturate(n, n.b.mul(n.b.cast(exact, n.b.f32()), factor), zero, n.b.element(n.in(0)))};
}

/// An i32 product as numbers, with one bias per column.
static Values rescale(Node &n, Value accumulated, Value scales, unsigned biasInput) {
  if (!accumulated || !scales)
    return {};
  Value real = n.b.mul(n.b.cast(accumulated, n.b.f32()), scales);
  if (!real || !n.has(biasInput))
    return {real};
  Value bias = vectorAlong(n, biasInput, n.in(biasInput), n.b.rank(real) - 1, n.b.rank(real),
                           {n.b.sizes(real).back(), "column"});
  return {bias ? n.b.add(real, bias) : Value()};
}

static Values convertMatMulIntegerToFloat(Node &n) {
  if (!n.requireRank(0, 2) || !n.requireRank(1, 2) || !isByte(n, 0) || !isByte(n, 1))
    return {};
  Value accumulated = n.b.matmul(centre(n, 0, 4, -2), centre(n, 1, 5, -1));
  if (!accumulated)
    return {};
  Type type = n.b.element(n.in(2));
  Value scales = n.b.mul(productScale(n, 2, accumulated, -2), productScale(n, 3, accumulated, -1));
  Values result = rescale(n, accumulated, scales, 6);
  return result.empty() ? result : Values{n.b.cast(result[0], type)};
}

/// The left operand is quantized over its own range.
static Values convertDynamicQuantizeMatMul(Node &n) {
  if (!n.requireRank(0, 2) || !n.requireRank(1, 2) || !isByte(n, 1))
    return {};
  QuantizedTensor a = quantizeDynamically(n, n.in(0));
  Value left = n.b.sub(n.b.cast(a.value, n.b.i32()), n.b.cast(a.zero, n.b.i32()));
  Value accumulated = n.b.matmul(left, centre(n, 1, 3, -1));
  if (!accumulated)
    return {};
  return rescale(n, accumulated, n.b.mul(productScale(n, 2, accumulated, -1), a.scale), 4);
}

static Values convertQGemm(Node &n) {
  if (!n.requireRank(0, 2, 2) || !n.requireRank(3, 2, 2) || !isByte(n, 0) || !isByte(n, 3))
    return {};
  bool transA = n.flag("transA", false), transB = n.flag("transB", false);
  // The zero points of B are one per column of the product.
  Value a = centreByOne(n, 0, 2), b = centre(n, 3, 5, transB ? 0 : 1);
  Value accumulated = n.b.matmul(a, b, transA, transB);
  if (accumulated && n.has(6) && !requireBroadcastTo(n, 6, n.b.sizes(accumulated), "the sizes of the product"))
    return {};
  if (n.has(6))
    accumulated = n.b.add(accumulated, n.in(6));
  if (!accumulated)
    return {};
  Value scales = n.b.mul(n.b.mul(single(n, 1), n.real("alpha", 1)), productScale(n, 4, accumulated, 1));
  if (!scales)
    return {};
  if (!n.has(7))
    return rescale(n, accumulated, scales, ~0u);
  Type type = n.has(8) ? n.b.element(n.in(8)) : n.b.element(n.in(0));
  Value factor = n.b.div(scales, single(n, 7)), zero = n.has(8) ? single(n, 8) : Value();
  if (!factor || (n.has(8) && !zero))
    return {};
  return {saturate(n, n.b.mul(n.b.cast(accumulated, n.b.f32()), factor), zero, type)};
}

void addMicrosoftQuantization(PatternRegistry &registry) {
  registry.add("QLinearAdd", 1, 2, convertAdd, domain);
  registry.add("QLinearMul", 1, 2, convertMul, domain);
  registry.add("QLinearSigmoid", 1, 2, convertSigmoid, domain);
  registry.add("QLinearLeakyRelu", 1, 2, convertLeakyRelu, domain);
  registry.add("QLinearSoftmax", 1, 2, convertSoftmax, domain);
  registry.add("QLinearGlobalAveragePool", 1, 2, convertGlobalAveragePool, domain);
  registry.add("QLinearAveragePool", 1, 2, convertAveragePool, domain);
  registry.add("QLinearConcat", 1, 2, convertConcat, domain);
  registry.add("QLinearWhere", 1, 3, convertWhere, domain);
  registry.add("QGemm", 1, 6, convertQGemm, domain);
  registry.add("MatMulIntegerToFloat", 1, 4, convertMatMulIntegerToFloat, domain);
  registry.add("DynamicQuantizeMatMul", 1, 3, convertDynamicQuantizeMatMul, domain);
}

} // namespace deepstride::onnx
