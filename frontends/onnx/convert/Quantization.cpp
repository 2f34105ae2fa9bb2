// Quantized operators as integer arithmetic, casts and scales; what becomes of them is for later passes to decide.
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Quantized.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/Windows.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

/// A scale or zero point fitted to its tensor: one number, one per place of `axis`, or one per block along it.
static Value fitParameter(Node &n, unsigned input, Value x, int64_t axis) {
  Value parameter = n.in(input);
  SizeVector sizes = n.b.sizes(x), own = n.b.sizes(parameter);
  int64_t rank = n.b.rank(x), block = n.integer("block_size", 0);
  bool isBlocked = block > 0 && rank > 0 && static_cast<int64_t>(own.size()) == rank;
  if (product(own).isConstant(1) && !(isBlocked && rank > 1))
    return n.b.reshape(parameter, {});
  auto place = n.axis(axis, rank);
  if (!place)
    return {};
  if (own.size() == 1 && !isBlocked)
    return vectorAlong(n, input, parameter, *place, rank, {sizes[*place], "place of the axis", /*orOne=*/true});
  if (static_cast<int64_t>(own.size()) != rank || block < 1)
    return n.refuse("expected a scale of one axis, or of the operand's with a 'block_size', found " +
                    describe(n.b.facts(parameter)));
  SizeVector expected = sizes;
  expected[*place] = SizeExpr::ceilDiv(sizes[*place], block);
  if (!requireSizes(n, input, expected, "one element per block"))
    return {};
  SizeVector repeated = own;
  repeated.insert(repeated.begin() + *place + 1, block);
  SizeExpr blocks = own[*place];
  own[*place] = blocks * SizeExpr(block);
  Value spread = n.b.reshape(n.b.broadcast(n.b.insertAxis(parameter, *place + 1), repeated), own);
  return n.b.sliceAxis(spread, *place, 0, sizes[*place]);
}

/// The sizes of x [..., blocks, block, ...] where its parameters are one for each whole block along an axis: there they
/// need no copies, and constants stay as small as they are stored.
static std::optional<SizeVector> wholeBlocks(Node &n, Value x, int64_t axis) {
  SizeVector sizes = n.b.sizes(x), own = n.b.sizes(n.in(1));
  int64_t block = n.integer("block_size", 0), rank = n.b.rank(x);
  bool isBlocked = block > 0 && rank > 0 && static_cast<int64_t>(own.size()) == rank && !product(own).isConstant(1);
  auto place = isBlocked ? n.axis(axis, rank) : std::nullopt;
  if (!place || own[*place] * SizeExpr(block) != sizes[*place])
    return std::nullopt;
  sizes[*place] = own[*place];
  if (sizes != own)
    return std::nullopt;
  sizes.insert(sizes.begin() + *place + 1, block);
  return sizes;
}

/// Whether the zero point, input 2, has the sizes of the scale, input 1. One number each may be a scalar or a vector.
static bool matchesScale(Node &n) {
  SizeVector scale = n.b.sizes(n.in(1)), zero = n.b.sizes(n.in(2));
  if (!n.has(2) || (product(scale).isConstant(1) && product(zero).isConstant(1) && scale.size() + zero.size() < 3))
    return true;
  if (scale.size() == 1 && zero.empty())
    return requireVector(n, 1, {1, "tensor, as the zero point has one"});
  if (scale.empty() && zero.size() == 1)
    return requireVector(n, 2, {1, "tensor, as the scale has one"});
  return requireSizes(n, 2, scale, "the sizes of the scale");
}

static Values convertDequantize(Node &n) {
  int64_t axis = n.integer("axis", 1);
  if (!matchesScale(n))
    return {};
  Value x = n.in(0);
  auto blocks = wholeBlocks(n, x, axis);
  auto parameter = [&](unsigned input) {
    return blocks ? n.b.insertAxis(n.in(input), *n.axis(axis, n.b.rank(n.in(0))) + 1) : fitParameter(n, input, x, axis);
  };
  Value scale = parameter(1);
  Type type = n.attribute("output_dtype") && n.integer("output_dtype", 0) != 0
                  ? n.elementType(n.integer("output_dtype", 0))
                  : n.b.element(n.in(1));
  if (!scale || !type)
    return {};
  Value centred = n.b.cast(blocks ? n.b.reshape(x, *blocks) : x, n.b.f32());
  if (n.has(2))
    centred = n.b.sub(centred, n.b.cast(parameter(2), n.b.f32()));
  Value real = n.b.mul(centred, n.b.cast(scale, n.b.f32()));
  return {n.b.cast(blocks ? n.b.reshape(real, n.b.sizes(x)) : real, type)};
}

Value saturate(Node &n, Value x, Value zero, Type type) {
  if (isNarrowFloat(type)) // the cast rounds and limits
    return convertElements(n, zero ? n.b.add(x, n.b.cast(zero, n.b.element(x))) : x, type);
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return n.refuse("expected a quantized type, found " + describeElement(type));
  unsigned width = integer.getWidth();
  bool isUnsigned = integer.isUnsigned();
  double low = isUnsigned ? 0 : -std::ldexp(1, width - 1), high = std::ldexp(1, isUnsigned ? width : width - 1) - 1;
  // In f32 every value of up to 24 bits is exact.
  Value shifted = n.b.unary(UnaryKind::round, n.b.cast(x, n.b.f32()));
  if (zero)
    shifted = n.b.add(shifted, n.b.cast(zero, n.b.f32()));
  Value limited = n.b.binary(BinaryKind::min, n.b.binary(BinaryKind::max, shifted, low), high);
  return n.b.cast(limited, type);
}

Type quantizedType(Node &n, Value zero) {
  Type type = zero                           ? n.b.element(zero)
              : n.integer("output_dtype", 0) ? n.elementType(n.integer("output_dtype", 0))
                                             : IntegerType::get(n.b.getContext(), 8, IntegerType::Unsigned);
  auto integer = dyn_cast_if_present<IntegerType>(type);
  if (type && !isNarrowFloat(type) && (!integer || integer.getWidth() > 16 || integer.getWidth() < 2))
    return n.refuse("expected a quantized type of 2 to 16 bits, found " + describeElement(type)), Type();
  return type;
}

static Values convertQuantize(Node &n) {
  int64_t axis = n.integer("axis", 1);
  if (!matchesScale(n))
    return {};
  Value x = n.in(0), scale = fitParameter(n, 1, x, axis);
  Value zero = scale && n.has(2) ? fitParameter(n, 2, x, axis) : Value();
  Type type = quantizedType(n, n.in(2));
  Type precision = n.integer("precision", 0) ? n.elementType(n.integer("precision", 0)) : n.b.element(n.in(1));
  if (!scale || !type || !precision || (n.has(2) && !zero))
    return {};
  return {saturate(n, n.b.div(n.b.cast(x, precision), n.b.cast(scale, precision)), zero, type)};
}

QuantizedTensor quantizeDynamically(Node &n, Value x) {
  SmallVector<int64_t> all = axesFrom(0, n.b.rank(x));
  Type type = IntegerType::get(n.b.getContext(), 8, IntegerType::Unsigned);
  Value high = n.b.binary(BinaryKind::max, n.b.reduce(ReduceKind::max, x, all, false), 0.0);
  Value low = n.b.binary(BinaryKind::min, n.b.reduce(ReduceKind::min, x, all, false), 0.0);
  // A tensor of zeros has scale 1 / 255.
  Value range = n.b.sub(high, low), isEmpty = n.b.binary(BinaryKind::eq, range, 0.0);
  Value scale = n.b.div(n.b.select(isEmpty, n.b.scalar(n.b.element(x), 1), range), 255.0);
  Value offset = n.b.unary(UnaryKind::neg, n.b.div(low, scale));
  Value zero = saturate(n, offset, {}, type);
  return {saturate(n, n.b.div(x, scale), zero, type), scale, zero};
}

static Values convertDynamicQuantize(Node &n) {
  auto [value, scale, zero] = quantizeDynamically(n, n.in(0));
  return {value, scale, zero};
}

Value single(Node &n, unsigned input) {
  auto count = product(n.b.sizes(n.in(input))).constant();
  if (!count || *count == 1) // what only a run tells, the reshape requires
    return n.b.reshape(n.in(input), {});
  return n.refuse("input " + Twine(input) + ": expected one element, found " + describe(n.b.facts(n.in(input))));
}

/// A parameter of the matrices of a tensor: one number, one per row or column (`axis`) of each matrix, or `isStack`:
/// those of every matrix on their own, where the other axis of the matrix is 1.
static Value ofMatrices(Node &n, unsigned input, SizeVector sizes, int64_t axis, bool isStack) {
  Value parameter = n.in(input);
  auto rank = static_cast<int64_t>(sizes.size());
  if (product(n.b.sizes(parameter)).isConstant(1))
    return n.b.reshape(parameter, {});
  bool isRow = (axis < 0 ? axis + rank : axis) == rank - 2;
  axis = isRow ? rank - 2 : rank - 1;
  StringRef each = isRow ? "row" : "column";
  if (n.b.rank(parameter) < 2)
    return vectorAlong(n, input, parameter, axis, rank, {sizes[axis], each, /*orOne=*/true});
  sizes[isRow ? rank - 1 : rank - 2] = 1;
  std::string what = ("one element per " + each).str();
  return (isStack ? requireSizes(n, input, sizes, what) : requireBroadcastTo(n, input, sizes, what)) ? parameter
                                                                                                     : Value();
}

/// An integer operand as i32, less its zero point.
static Value without(Node &n, unsigned input, Value zero) {
  return zero ? n.b.sub(n.b.cast(n.in(input), n.b.i32()), n.b.cast(zero, n.b.i32())) : Value();
}

Value centre(Node &n, unsigned input, unsigned zeroInput, int64_t axis) {
  if (!n.has(zeroInput))
    return n.b.cast(n.in(input), n.b.i32());
  return without(n, input, ofMatrices(n, zeroInput, n.b.sizes(n.in(input)), axis, /*isStack=*/true));
}

Value centreByOne(Node &n, unsigned input, unsigned zeroInput) {
  return n.has(zeroInput) ? without(n, input, single(n, zeroInput)) : n.b.cast(n.in(input), n.b.i32());
}

static Values convertMatMulInteger(Node &n) {
  if (!n.requireRank(0, 2) || !n.requireRank(1, 2))
    return {};
  return {n.b.matmul(centre(n, 0, 2, -2), centre(n, 1, 3, -1))};
}

Value productScale(Node &n, unsigned input, Value product, int64_t axis) {
  Value scale = ofMatrices(n, input, n.b.sizes(product), axis, /*isStack=*/false);
  return scale ? n.b.cast(scale, n.b.f32()) : Value();
}

/// The i32 result of a product or convolution, rescaled and quantized to the type of the zero point of the result.
static Value requantize(Node &n, Value accumulated, Value scales, unsigned scaleInput, unsigned zeroInput) {
  Type type = quantizedType(n, n.in(zeroInput));
  if (!accumulated || !scales || !type)
    return {};
  Value factor = n.b.div(scales, n.b.cast(n.b.reshape(n.in(scaleInput), {}), n.b.f32()));
  return saturate(n, n.b.mul(n.b.cast(accumulated, n.b.f32()), factor), n.b.reshape(n.in(zeroInput), {}), type);
}

static Values convertQLinearMatMul(Node &n) {
  if (!n.requireRank(0, 2) || !n.requireRank(3, 2))
    return {};
  Value left = centre(n, 0, 2, -2), accumulated = left ? n.b.matmul(left, centre(n, 3, 5, -1)) : Value();
  Value leftScale = accumulated ? productScale(n, 1, accumulated, -2) : Value();
  if (!leftScale)
    return {};
  Value scales = n.b.mul(leftScale, productScale(n, 4, accumulated, -1));
  return {requantize(n, accumulated, scales, 6, 7)};
}

static Value convolve(Node &n, Value x, Value weight, Value bias) {
  if (!x || !weight)
    return {};
  if (n.b.rank(x) < 3 || n.b.rank(weight) != n.b.rank(x))
    return n.refuse("expected an operand and a weight of one rank of at least 3");
  SmallVector<int64_t> kernel;
  SizeVector sizes = n.b.sizes(x), weightSizes = n.b.sizes(weight);
  for (const SizeExpr &size : ArrayRef(weightSizes).drop_front(2)) {
    if (!size.constant())
      return n.refuse("expected static kernel sizes, found " + size.brief());
    kernel.push_back(*size.constant());
  }
  auto windows = readWindows(n, kernel, kernel.size());
  if (!windows || !resolveAutoPad(n, *windows, ArrayRef(sizes).drop_front(2)))
    return {};
  x = padded(n.b, x, *windows, n.b.scalar(n.b.element(x), 0)); // the zero point is taken off already
  SmallVector<Value> operands = {x, weight};
  if (bias)
    operands.push_back(bias);
  return n.b.create<ds::ConvOp>(operands, x, weight, bias, windows->strides, windows->pads, windows->dilations,
                                n.integer("group", 1));
}

/// A parameter of the weight of a convolution, in the place of `axis` of `rank` axes: one number, or one per filter.
static Value ofFilters(Node &n, unsigned input, Value weight, int64_t axis, int64_t rank) {
  if (product(n.b.sizes(n.in(input))).isConstant(1))
    return n.b.reshape(n.in(input), {});
  SizeVector sizes = n.b.sizes(weight);
  return sizes.empty() ? Value() : vectorAlong(n, input, n.in(input), axis, rank, {sizes[0], "filter", /*orOne=*/true});
}

static Value centreWeight(Node &n, unsigned input, unsigned zeroInput) {
  if (!n.has(zeroInput))
    return n.b.cast(n.in(input), n.b.i32());
  return without(n, input, ofFilters(n, zeroInput, n.in(input), 0, n.b.rank(n.in(input))));
}

static Values convertConvInteger(Node &n) { return {convolve(n, centreByOne(n, 0, 2), centreWeight(n, 1, 3), {})}; }

static Values convertQLinearConv(Node &n) {
  Value accumulated = convolve(n, centreByOne(n, 0, 2), centreWeight(n, 3, 5), n.in(8));
  if (!accumulated)
    return {};
  Value scale = single(n, 1), scales = ofFilters(n, 4, n.in(3), 1, n.b.rank(accumulated));
  if (!scale || !scales)
    return {};
  scales = n.b.mul(n.b.cast(scale, n.b.f32()), n.b.cast(scales, n.b.f32()));
  return {requantize(n, accumulated, scales, 6, 7)};
}

void addQuantization(PatternRegistry &registry) {
  registry.add("DequantizeLinear", 10, 2, convertDequantize);
  registry.add("QuantizeLinear", 10, 2, convertQuantize);
  registry.add("DequantizeLinear", 1, 2, convertDequantize, "com.microsoft");
  registry.add("QuantizeLinear", 1, 2, convertQuantize, "com.microsoft");
  registry.add("DynamicQuantizeLinear", 11, 1, convertDynamicQuantize);
  registry.add("MatMulInteger", 10, 2, convertMatMulInteger);
  registry.add("ConvInteger", 10, 2, convertConvInteger);
  registry.add("QLinearMatMul", 10, 8, convertQLinearMatMul);
  registry.add("QLinearConv", 10, 8, convertQLinearConv);
}

} // namespace deepstride::onnx
