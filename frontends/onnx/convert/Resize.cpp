// Resize and Upsample: along each resized axis, output places are mapped to coordinates of the input, whose neighbours
// are gathered and weighted. Places and weights are computed, not stored, so that sizes may be symbolic.
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::UnaryKind;

namespace {
/// What happens along one axis. Lengths and the scale (result over operand) are f64 scalars.
struct AxisResize {
  int64_t axis;
  SizeExpr inSize, size;
  Value scale, inLength, outLength;
  Value exactLength; // scale times inLength, which need not be whole
  Value roiStart, roiEnd;
  bool hasScale = false; // given, and not 1: the places change even where the size does not
  int64_t times = 0;     // a whole scale that is known; 0: none
};
} // namespace

static Value asReal(DsBuilder &b, const SizeExpr &size) { return b.cast(b.reshape(b.shape({size}), {}), b.f64()); }

static std::string coordinateMode(Node &n) {
  return n.text("coordinate_transformation_mode", n.version() < 11 ? "asymmetric" : "half_pixel",
                {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                 "tf_half_pixel_for_nn", "tf_crop_and_resize"});
}

static std::string nearestMode(Node &n) {
  return n.text("nearest_mode", "round_prefer_floor", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
}

/// The operand's coordinate of each place of the result, as ONNX's coordinate_transformation_mode says.
static Value coordinates(Node &n, const AxisResize &resize) {
  DsBuilder &b = n.b;
  std::string mode = coordinateMode(n);
  Value place = b.cast(b.iota(0, {resize.size}), b.f64());
  if (mode == "asymmetric")
    return b.div(place, resize.scale);
  Value isSingle = b.binary(BinaryKind::eq, resize.exactLength, 1.0), zero = b.scalar(b.f64(), 0);
  Value last = b.sub(resize.inLength, 1.0);
  Value steps = b.select(isSingle, b.scalar(b.f64(), 1), b.sub(resize.exactLength, 1.0));
  if (mode == "align_corners")
    return b.select(isSingle, zero, b.div(b.mul(place, last), steps));
  if (mode == "tf_crop_and_resize") {
    if (!resize.roiStart)
      return n.refuse("attribute 'coordinate_transformation_mode': 'tf_crop_and_resize' needs input 1 ('roi')");
    Value extent = b.mul(b.sub(resize.roiEnd, resize.roiStart), last);
    Value inside = b.select(isSingle, b.div(extent, 2.0), b.div(b.mul(place, extent), steps));
    return b.add(b.mul(resize.roiStart, last), inside);
  }
  Value centre = b.div(b.add(place, 0.5), resize.scale);
  if (mode == "tf_half_pixel_for_nn")
    return centre;
  Value half = b.sub(centre, 0.5);
  if (mode == "pytorch_half_pixel")
    return b.select(isSingle, zero, half);
  if (mode == "half_pixel_symmetric") {
    // The result is centred where its size is not exactly what the scale asks for. Distances from the two middles are
    // multiples of a half, so that a place which meets an element exactly is a whole number.
    Value distance = b.sub(b.add(place, 0.5), b.div(resize.outLength, 2.0));
    return b.add(b.div(distance, resize.scale), b.div(last, 2.0));
  }
  return half;
}

static Value nearest(Node &n, Value x, Value scale) {
  DsBuilder &b = n.b;
  if (n.version() < 11) // whose text leaves it open; so do ONNX's cases of opset 10 and ONNX Runtime have it
    return b.select(b.binary(BinaryKind::lt, scale, 1.0), b.unary(UnaryKind::ceil, x), b.unary(UnaryKind::floor, x));
  std::string mode = nearestMode(n);
  if (mode == "floor" || mode == "ceil")
    return b.unary(mode == "floor" ? UnaryKind::floor : UnaryKind::ceil, x);
  return mode == "round_prefer_floor" ? b.unary(UnaryKind::ceil, b.sub(x, 0.5))
                                      : b.unary(UnaryKind::floor, b.add(x, 0.5));
}

/// Whether the nearest of place i under a whole scale is i / scale, rounded down: every element is repeated.
static bool repeatsElements(Node &n) {
  std::string coordinates = coordinateMode(n);
  if (n.version() < 11)
    return coordinates == "asymmetric";
  std::string nearest = nearestMode(n);
  if (coordinates == "asymmetric" || coordinates == "tf_half_pixel_for_nn")
    return nearest == "floor";
  bool isCentred =
      llvm::is_contained({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"}, StringRef(coordinates));
  return isCentred && nearest.rfind("round", 0) == 0; // no coordinate is half way between two
}

/// Repeats elements along the axes with whole scales, and takes these from the list.
static Value repeat(Node &n, Value x, SmallVectorImpl<AxisResize> &axes) {
  DsBuilder &b = n.b;
  SizeVector apart, repeated, joined = b.sizes(x);
  for (int64_t axis = 0, rank = b.rank(x); axis < rank; ++axis) {
    auto resize = llvm::find_if(axes, [&](const AxisResize &resize) { return resize.axis == axis && resize.times; });
    apart.push_back(joined[axis]);
    repeated.push_back(joined[axis]);
    if (resize == axes.end())
      continue;
    apart.push_back(1);
    repeated.push_back(resize->times);
    joined[axis] = resize->size;
    axes.erase(resize);
  }
  return apart.size() == joined.size() ? x : b.reshape(b.broadcast(b.reshape(x, apart), repeated), joined);
}

/// The weight of a neighbour at a distance of the coordinate.
static Value weight(Node &n, bool isCubic, Value distance) {
  DsBuilder &b = n.b;
  Value d = b.unary(UnaryKind::abs, distance);
  if (!isCubic)
    return b.binary(BinaryKind::max, b.sub(b.scalar(b.f64(), 1), d), 0.0);
  double a = n.real("cubic_coeff_a", -0.75);
  auto horner = [&](ArrayRef<double> coefficients) {
    Value sum = b.scalar(b.f64(), coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = b.add(b.mul(sum, d), coefficient);
    return sum;
  };
  Value inner = horner({a + 2, -(a + 3), 0, 1}), outer = horner({a, -5 * a, 8 * a, -4 * a});
  Value zero = b.scalar(b.f64(), 0);
  Value far = b.select(b.binary(BinaryKind::lt, d, 2.0), outer, zero);
  return b.select(b.binary(BinaryKind::le, d, 1.0), inner, far);
}

static Value gatherAt(DsBuilder &b, Value x, int64_t axis, Value place, Value last) {
  Value inside = b.binary(BinaryKind::min, b.binary(BinaryKind::max, place, 0.0), last);
  return b.gather(axis, x, b.cast(inside, b.i64()));
}

/// With a kernel that is as wide as the result's pixels: a matrix of weights over the operand's places, to which those
/// just outside of it are added as copies of its ends.
static Value antialiasAxis(Node &n, Value x, const AxisResize &resize, bool isCubic, Value at) {
  DsBuilder &b = n.b;
  Value scale = b.binary(BinaryKind::min, resize.scale, 1.0);
  double support = isCubic ? 2 : 1;
  Value reach = b.add(b.unary(UnaryKind::ceil, b.div(b.scalar(b.f64(), support), scale)), 1.0);
  SizeExpr margin = computedSize(n, b.cast(reach, b.i64())), extended = resize.inSize + margin * SizeExpr(2);
  Value last = b.sub(resize.inLength, 1.0);
  Value place = b.sub(b.cast(b.iota(0, {extended}), b.f64()), reach);
  Value distance = b.mul(b.sub(b.alignVector(place, 1, 2), b.alignVector(at, 0, 2)), scale);
  Value share = weight(n, isCubic, distance);
  if (n.flag("exclude_outside", false)) {
    Value inside =
        b.binary(BinaryKind::bit_and, b.binary(BinaryKind::ge, place, 0.0), b.binary(BinaryKind::le, place, last));
    share = b.select(b.alignVector(inside, 1, 2), share, b.scalar(b.f64(), 0));
  }
  share = b.cast(b.div(share, b.reduce(ds::ReduceKind::sum, share, {1})), b.element(x));
  SmallVector<int64_t> order = axesFrom(0, b.rank(x)); // the axis last, and back: it changes places with it
  if (order.empty())
    return {};
  std::swap(order[resize.axis], order.back());
  Value rows = b.transpose(gatherAt(b, x, resize.axis, place, last), order);
  if (!rows)
    return {};
  SizeVector sizes = b.sizes(rows);
  SizeExpr lines = product(ArrayRef(sizes).drop_back());
  sizes.back() = resize.size;
  Value resized = b.matmul(b.reshape(rows, {lines, extended}), share, false, /*transposeB=*/true);
  return b.transpose(b.reshape(resized, sizes), order);
}

static Value interpolateAxis(Node &n, Value x, const AxisResize &resize, const std::string &mode, Value at) {
  DsBuilder &b = n.b;
  Value last = b.sub(resize.inLength, 1.0);
  if (mode == "nearest")
    return gatherAt(b, x, resize.axis, nearest(n, at, resize.scale), last);
  bool isCubic = mode == "cubic", excludes = n.flag("exclude_outside", false);
  if (n.flag("antialias", false))
    return antialiasAxis(n, x, resize, isCubic, at);
  Value base = b.unary(UnaryKind::floor, at), sum, total;
  for (int64_t tap = isCubic ? -1 : 0; tap <= (isCubic ? 2 : 1); ++tap) {
    Value place = b.add(base, static_cast<double>(tap)), share = weight(n, isCubic, b.sub(at, place));
    if (excludes) {
      Value isInside =
          b.binary(BinaryKind::bit_and, b.binary(BinaryKind::ge, place, 0.0), b.binary(BinaryKind::le, place, last));
      share = b.select(isInside, share, b.scalar(b.f64(), 0));
    }
    total = total ? b.add(total, share) : share;
    Value aligned = b.alignVector(b.cast(share, b.element(x)), resize.axis, b.rank(x));
    Value part = b.mul(gatherAt(b, x, resize.axis, place, last), aligned);
    sum = sum ? b.add(sum, part) : part;
  }
  return excludes ? b.div(sum, b.alignVector(b.cast(total, b.element(x)), resize.axis, b.rank(x))) : sum;
}

/// A size as an integer; refused where it is none that a tensor can have.
static SizeExpr wholeSize(Node &n, double size) {
  if (size >= 0 && size < 0x1p55)
    return static_cast<int64_t>(size);
  n.refuse("expected sizes from 0 to 2^55, found " + std::to_string(size));
  return 0;
}

/// The size that a scale gives, in f32 as ONNX infers it.
static SizeExpr scaledSize(Node &n, const SizeExpr &size, Value scale, std::optional<double> known) {
  DsBuilder &b = n.b;
  auto length = size.constant();
  if (known && length)
    return wholeSize(n, std::floor(static_cast<float>(*length) * static_cast<float>(*known)));
  if (known && *known == std::floor(*known) && *known < 1e9)
    return size * SizeExpr(static_cast<int64_t>(*known));
  Value scaled = b.mul(b.cast(asReal(b, size), b.f32()), b.cast(scale, b.f32()));
  return computedSize(n, b.cast(b.unary(UnaryKind::floor, scaled), b.i64()));
}

static Value elementOf(DsBuilder &b, Value list, size_t index) {
  return b.cast(b.reshape(b.sliceAxis(list, 0, static_cast<int64_t>(index), 1), {}), b.f64());
}

/// All resized axes scaled alike, so that the result fits the sizes asked for or covers them.
static void keepAspectRatio(Node &n, MutableArrayRef<AxisResize> axes, bool covers) {
  DsBuilder &b = n.b;
  Value scale;
  bool isStatic = true;
  double known = covers ? 0 : HUGE_VAL;
  for (AxisResize &axis : axes) {
    scale = scale ? b.binary(covers ? BinaryKind::max : BinaryKind::min, scale, axis.scale) : axis.scale;
    auto in = axis.inSize.constant(), out = axis.size.constant();
    isStatic &= in && out && *in > 0;
    if (isStatic)
      known = covers ? std::max(known, double(*out) / double(*in)) : std::min(known, double(*out) / double(*in));
  }
  for (AxisResize &axis : axes) {
    axis.scale = isStatic ? b.scalar(b.f64(), known) : scale;
    axis.exactLength = b.mul(axis.scale, axis.inLength);
    Value rounded = b.unary(UnaryKind::floor, b.add(axis.exactLength, 0.5));
    axis.size = isStatic ? wholeSize(n, known * double(*axis.inSize.constant()) + 0.5)
                         : computedSize(n, b.cast(rounded, b.i64()));
    axis.outLength = asReal(b, axis.size);
  }
}

namespace {
/// Which operands tell what; absent ones have no input.
struct ResizeInputs {
  std::optional<unsigned> roi, scales, sizes;
};
} // namespace

/// The resized axes, from scales or from sizes.
static std::optional<SmallVector<AxisResize>> readAxes(Node &n, const ResizeInputs &inputs) {
  DsBuilder &b = n.b;
  SizeVector sizes = b.sizes(n.in(0));
  auto axes = n.axes(n.integers("axes").value_or(axesFrom(0, b.rank(n.in(0)))), b.rank(n.in(0)));
  if (!axes)
    return std::nullopt;
  auto listOf = [&](std::optional<unsigned> input, size_t length) -> Value {
    if (!input || !n.has(*input) || product(b.sizes(n.in(*input))).isConstant(0))
      return {};
    if (b.rank(n.in(*input)) != 1 || b.sizes(n.in(*input))[0] != SizeExpr(static_cast<int64_t>(length)))
      return n.refuse("input " + Twine(*input) + ": expected " + Twine(length) + " elements, found " +
                      describe(b.facts(n.in(*input))));
    return n.in(*input);
  };
  Value sizeList = listOf(inputs.sizes, axes->size()), scaleList, roi = listOf(inputs.roi, 2 * axes->size());
  std::optional<SmallVector<double>> scales;
  if (!sizeList && inputs.scales) {
    scaleList = listOf(inputs.scales, axes->size());
    scales = scaleList ? n.realsOf(*inputs.scales) : std::nullopt;
  } else if (auto listed = dyn_cast_if_present<DenseF32ArrayAttr>(n.attribute("scales"));
             listed && !sizeList && listed.size() == static_cast<int64_t>(axes->size())) {
    scales.emplace(listed.asArrayRef().begin(), listed.asArrayRef().end()); // Upsample, before version 9
  }
  if (n.isRefused())
    return std::nullopt;
  if (!sizeList && !scaleList && !scales)
    return n.refuse("expected scales or sizes for each axis (" + Twine(axes->size()) + "), found neither");
  auto targets = sizeList ? b.sizesIn(sizeList) : std::nullopt;
  std::string policy = n.text("keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
  SmallVector<AxisResize> result;
  for (auto [i, axis] : llvm::enumerate(*axes)) {
    AxisResize resize;
    resize.axis = axis;
    resize.inSize = sizes[axis];
    resize.inLength = asReal(b, sizes[axis]);
    if (sizeList) {
      resize.size = targets ? (*targets)[i] : computedSize(n, b.sliceAxis(sizeList, 0, static_cast<int64_t>(i), 1));
      resize.outLength = resize.exactLength = asReal(b, resize.size);
      resize.scale = b.div(resize.outLength, resize.inLength);
    } else {
      std::optional<double> known = scales ? std::optional((*scales)[i]) : std::nullopt;
      if (known && !(*known > 0))
        return n.refuse("scales: expected positive ones, found " + std::to_string(*known));
      resize.hasScale = known != 1.0;
      resize.scale = known ? b.scalar(b.f64(), *known) : elementOf(b, scaleList, i);
      if (known && *known == std::floor(*known) && *known < 1e6)
        resize.times = static_cast<int64_t>(*known);
      resize.size = known == 1.0 ? sizes[axis] : scaledSize(n, sizes[axis], resize.scale, known);
      resize.outLength = asReal(b, resize.size);
      resize.exactLength = b.mul(resize.scale, resize.inLength);
    }
    if (roi) {
      resize.roiStart = elementOf(b, roi, i);
      resize.roiEnd = elementOf(b, roi, i + axes->size());
    }
    result.push_back(std::move(resize));
  }
  for (AxisResize &axis : result) {
    auto size = axis.size.constant(), length = axis.inSize.constant();
    if (sizeList && size && length && *length > 0 && *size % *length == 0)
      axis.times = *size / *length;
    if (axis.times < 2 || axis.size != axis.inSize * SizeExpr(axis.times) || policy != "stretch")
      axis.times = 0;
  }
  if (sizeList && policy != "stretch")
    keepAspectRatio(n, result, policy == "not_smaller");
  bool isCropped = n.text("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  llvm::erase_if(result, [&](const AxisResize &axis) { // nothing happens along these
    return !isCropped && axis.size == axis.inSize && !axis.hasScale;
  });
  return result;
}

/// Integers, from the real numbers that interpolation gives: limited to their range, and rounded down where the
/// operator takes single places, to the nearest where it averages over pixels.
static Value toIntegers(DsBuilder &b, Value x, IntegerType type, bool rounds) {
  unsigned width = type.getWidth();
  bool isUnsigned = type.isUnsigned();
  APInt least = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  APInt most = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  x = rounds ? b.unary(UnaryKind::floor, b.add(x, 0.5)) : x;
  x = b.binary(BinaryKind::max, x, least.roundToDouble(/*isSigned=*/!isUnsigned));
  return b.cast(b.binary(BinaryKind::min, x, most.roundToDouble(/*isSigned=*/!isUnsigned)), type);
}

static Values resize(Node &n, const ResizeInputs &inputs) {
  std::string mode = n.text("mode", "nearest", {"nearest", "linear", "cubic"});
  auto axes = readAxes(n, inputs);
  if (!axes || n.isRefused())
    return {};
  DsBuilder &b = n.b;
  Value x = n.in(0);
  Type type = b.element(x);
  auto integer = dyn_cast<IntegerType>(type);
  bool isMixed = integer && mode != "nearest" && !axes->empty();
  if (isMixed)
    x = b.cast(x, integer.getWidth() <= 16 ? b.f32() : b.f64());
  else if (mode != "nearest" && (type.isF16() || type.isBF16()))
    x = b.cast(x, b.f32()); // rounded once, after the last axis
  if (mode == "nearest" && repeatsElements(n))
    x = repeat(n, x, *axes);
  SmallVector<Value> places;
  for (const AxisResize &axis : *axes)
    places.push_back(coordinates(n, axis));
  for (size_t step = 0; step < places.size(); ++step) {
    // The nearest are the same in any order: single elements are picked from what is not yet enlarged, then whole rows.
    size_t which = mode == "nearest" ? places.size() - 1 - step : step;
    x = interpolateAxis(n, x, (*axes)[which], mode, places[which]);
  }
  if (isMixed && x)
    x = toIntegers(b, x, integer, n.flag("antialias", false));
  if (n.text("coordinate_transformation_mode", "") != "tf_crop_and_resize" || !x)
    return {b.cast(x, type)};
  Value outside = b.scalar(b.element(x), n.real("extrapolation_value", 0));
  for (auto [axis, place] : llvm::zip_equal(*axes, places)) {
    Value isInside = b.binary(BinaryKind::bit_and, b.binary(BinaryKind::ge, place, 0.0),
                              b.binary(BinaryKind::le, place, b.sub(axis.inLength, 1.0)));
    x = b.select(b.alignVector(isInside, axis.axis, b.rank(x)), x, outside);
  }
  return {b.cast(x, type)};
}

void addResize(PatternRegistry &registry) {
  registry.add("Upsample", 7, 1, [](Node &n) { return resize(n, {}); });
  registry.add("Upsample", 9, 2, [](Node &n) { return resize(n, {{}, 1, {}}); });
  registry.add("Resize", 10, 2, [](Node &n) { return resize(n, {{}, 1, {}}); });
  registry.add("Resize", 11, 1, [](Node &n) { return resize(n, {1, 2, 3}); });
}

} // namespace deepstride::onnx
