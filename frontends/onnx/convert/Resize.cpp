// Resize and Upsample: along each resized axis, output places are mapped to coordinates of the input, whose neighbours
// are gathered and weighted. Places and weights are computed, not stored, so that sizes may be symbolic.
#include "frontends/onnx/convert/Registry.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::UnaryKind;

namespace {
/// What happens along one axis.
struct AxisResize {
  int64_t axis;
  SizeExpr size;  // of the result
  Value scale;    // f64, result over operand
  Value inLength; // f64
  Value outLength;
};
} // namespace

static Value asReal(DsBuilder &b, const SizeExpr &size) { return b.cast(b.reshape(b.shape({size}), {}), b.f64()); }

/// The operand's coordinate of each place of the result, as ONNX's coordinate_transformation_mode says.
static Value coordinates(Node &n, const AxisResize &resize) {
  DsBuilder &b = n.b;
  std::string mode = n.text("coordinate_transformation_mode", n.version() < 11 ? "asymmetric" : "half_pixel",
                            {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                             "tf_half_pixel_for_nn"});
  Value place = b.cast(b.iota(0, {resize.size}), b.f64());
  // Not rounded to the size of the result: scales need not fit.
  Value outLength = b.mul(resize.scale, resize.inLength);
  if (mode == "asymmetric")
    return b.div(place, resize.scale);
  Value isSingle = b.binary(BinaryKind::eq, outLength, 1.0), zero = b.scalar(b.f64(), 0);
  if (mode == "align_corners") {
    Value steps = b.select(isSingle, b.scalar(b.f64(), 1), b.sub(outLength, 1.0));
    return b.select(isSingle, zero, b.div(b.mul(place, b.sub(resize.inLength, 1.0)), steps));
  }
  Value centre = b.div(b.add(place, 0.5), resize.scale);
  if (mode == "tf_half_pixel_for_nn")
    return centre;
  Value half = b.sub(centre, 0.5);
  if (mode == "pytorch_half_pixel")
    return b.select(isSingle, zero, half);
  if (mode == "half_pixel_symmetric") {
    // The result is centred where its size is not exactly what the scale asks for.
    Value adjustment = b.div(resize.outLength, outLength);
    Value middle = b.div(resize.inLength, 2.0);
    return b.add(half, b.mul(middle, b.sub(b.scalar(b.f64(), 1), adjustment)));
  }
  return half;
}

static Value nearest(Node &n, Value x) {
  DsBuilder &b = n.b;
  std::string mode = n.text("nearest_mode", n.version() < 11 ? "floor" : "round_prefer_floor",
                            {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  if (mode == "floor" || mode == "ceil")
    return b.unary(mode == "floor" ? UnaryKind::floor : UnaryKind::ceil, x);
  return mode == "round_prefer_floor" ? b.unary(UnaryKind::ceil, b.sub(x, 0.5))
                                      : b.unary(UnaryKind::floor, b.add(x, 0.5));
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

static Value resizeAxis(Node &n, Value x, const AxisResize &resize, const std::string &mode) {
  DsBuilder &b = n.b;
  Value at = coordinates(n, resize), last = b.sub(resize.inLength, 1.0);
  if (mode == "nearest")
    return gatherAt(b, x, resize.axis, nearest(n, at), last);
  bool isCubic = mode == "cubic", excludes = n.flag("exclude_outside", false);
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

/// The resized axes, from scales or from sizes.
static std::optional<SmallVector<AxisResize>> readAxes(Node &n, unsigned scalesInput, unsigned sizesInput) {
  DsBuilder &b = n.b;
  SizeVector sizes = b.sizes(n.in(0));
  auto axes = n.axes(n.integers("axes").value_or(axesFrom(0, b.rank(n.in(0)))), b.rank(n.in(0)));
  auto isGiven = [&](unsigned input) { return n.has(input) && !product(b.sizes(n.in(input))).isConstant(0); };
  if (!axes)
    return std::nullopt;
  std::optional<SizeVector> targets;
  std::optional<SmallVector<double>> scales;
  if (isGiven(sizesInput))
    targets = n.sizesOf(sizesInput, "sizes");
  else if (isGiven(scalesInput) && !(scales = n.realsOf(scalesInput)))
    return n.refuse("input " + Twine(scalesInput) + " ('scales'): expected a constant; give the sizes instead");
  if (n.isRefused())
    return std::nullopt;
  if (!targets && !scales)
    return n.refuse("expected constant scales, or sizes, found neither");
  if ((targets ? targets->size() : scales->size()) != axes->size())
    return n.refuse("expected one scale or size per axis (" + Twine(axes->size()) + ")");
  SmallVector<AxisResize> result;
  for (auto [i, axis] : llvm::enumerate(*axes)) {
    SizeExpr size = sizes[axis], target = targets ? (*targets)[i] : size;
    if (scales) {
      double scale = (*scales)[i];
      if (scale == 1)
        continue;
      auto known = size.constant();
      bool isWhole = scale == std::floor(scale) && scale < 1e9;
      if (!(scale > 0) || (!known && !isWhole))
        return n.refuse("input " + Twine(scalesInput) +
                        " ('scales'): expected positive scales, whole ones for "
                        "dimensions that are dynamic; pin them with --dim");
      // In f32, as ONNX infers the size.
      target = known
                   ? SizeExpr(static_cast<int64_t>(std::floor(static_cast<float>(*known) * static_cast<float>(scale))))
                   : size * SizeExpr(static_cast<int64_t>(scale));
    }
    if (target == size && !scales)
      continue;
    Value in = asReal(b, size), out = asReal(b, target);
    result.push_back({axis, target, scales ? b.scalar(b.f64(), (*scales)[i]) : b.div(out, in), in, out});
  }
  return result;
}

static Values resize(Node &n, unsigned scalesInput, unsigned sizesInput) {
  std::string mode = n.text("mode", "nearest", {"nearest", "linear", "cubic"});
  if (n.flag("antialias", false) || n.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    return n.refuse("attributes 'antialias' and 'keep_aspect_ratio_policy' are not supported; legal are 0 and stretch");
  auto axes = readAxes(n, scalesInput, sizesInput);
  if (!axes || n.isRefused())
    return {};
  Value x = n.in(0);
  for (const AxisResize &axis : *axes)
    x = resizeAxis(n, x, axis, mode);
  return {x};
}

void addResize(PatternRegistry &registry) {
  constexpr unsigned none = ~0u;
  registry.add("Upsample", 9, 2, [](Node &n) { return resize(n, 1, none); });
  registry.add("Resize", 10, 2, [](Node &n) { return resize(n, 1, none); });
  registry.add("Resize", 11, 1, [](Node &n) { return resize(n, 2, 3); });
}

} // namespace deepstride::onnx
