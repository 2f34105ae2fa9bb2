// Operators that read images at computed, fractional places: AffineGrid, GridSample, RoiAlign, DeformConv.
// Places are tensors [batch, points], one per spatial axis; pixels are rows of all channels.
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"
#include "frontends/onnx/convert/Windows.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

namespace {
/// [N, C, D...] as rows [N, product of D, C].
struct Pixels {
  Pixels(DsBuilder &b, Value x) : b(b) {
    SizeVector all = b.sizes(x);
    SmallVector<int64_t> order = axesFrom(2, b.rank(x));
    order.insert(order.begin(), 0);
    order.push_back(1);
    sizes.assign(all.begin() + 2, all.end());
    rows = b.reshape(b.transpose(x, order), {all[0], product(sizes), all[1]});
  }
  Value number(const SizeExpr &size, Type type) const { return b.cast(b.reshape(b.shape({size}), {}), type); }
  Value last(size_t axis, Type type) const { return number(sizes[axis] - SizeExpr(1), type); }
  Value clamped(size_t axis, Value place) const {
    return b.binary(BinaryKind::min, b.binary(BinaryKind::max, place, 0.0), last(axis, b.element(place)));
  }
  Value isInside(size_t axis, Value place) const {
    return b.binary(BinaryKind::bit_and, b.binary(BinaryKind::ge, place, 0.0),
                    b.binary(BinaryKind::le, place, last(axis, b.element(place))));
  }
  /// [N, P, C] at whole places, which must lie inside; with `images` [R], which are checked, of those: [R, P, C].
  Value at(ArrayRef<Value> places) const {
    if (!rows)
      return {};
    Value flat;
    for (auto [axis, place] : llvm::enumerate(places)) {
      Value index = b.cast(place, b.i64());
      flat = flat ? b.add(b.mul(flat, b.reshape(b.shape({sizes[axis]}), {})), index) : index;
    }
    if (images) {
      SizeVector shape = b.sizes(rows);
      Value start = b.mul(images, b.reshape(b.shape({shape[1]}), {}));
      return b.gather(0, b.reshape(rows, {shape[0] * shape[1], shape[2]}), b.add(flat, b.insertAxis(start, 1)));
    }
    Value tuples = b.insertAxis(flat, 2);
    return b.create<ds::GatherNdOp>({rows, tuples}, 1, rows, tuples);
  }

  DsBuilder &b;
  Value rows, images;
  SizeVector sizes;
};

/// One of the pixels that a place is interpolated from, along one axis. With `isInside`, those that are not are 0.
struct Tap {
  Value place, weight, isInside;
};
} // namespace

/// All combinations of one tap per axis: the pixels [N, P, C], and the product of the weights.
static void combineTaps(const Pixels &pixels, ArrayRef<SmallVector<Tap>> axes,
                        llvm::function_ref<void(Value pixel, Value weight)> body) {
  DsBuilder &b = pixels.b;
  size_t count = 1;
  for (const auto &taps : axes)
    count *= taps.size();
  for (size_t which = 0; which < count; ++which) {
    SmallVector<Value> places(axes.size());
    Value weight, isInside;
    size_t rest = which;
    for (size_t axis = axes.size(); axis-- > 0; rest /= axes[axis].size()) {
      const Tap &tap = axes[axis][rest % axes[axis].size()];
      places[axis] = tap.place;
      weight = weight ? b.mul(tap.weight, weight) : tap.weight;
      if (tap.isInside)
        isInside = isInside ? b.binary(BinaryKind::bit_and, isInside, tap.isInside) : tap.isInside;
    }
    Value pixel = pixels.at(places);
    // Not by a weight of 0: the pixel read instead may be infinite or NaN.
    body(isInside && pixel ? b.select(b.insertAxis(isInside, 2), pixel, b.scalar(b.element(pixel), 0)) : pixel, weight);
  }
}

static Value weightedSum(const Pixels &pixels, ArrayRef<SmallVector<Tap>> axes) {
  DsBuilder &b = pixels.b;
  Value sum;
  combineTaps(pixels, axes, [&](Value pixel, Value weight) {
    Value part = b.mul(pixel, b.insertAxis(weight, 2));
    sum = sum ? b.add(sum, part) : part;
  });
  return sum;
}

/// Linear taps of an image that zeros surround.
static SmallVector<Tap> linearTaps(const Pixels &pixels, size_t axis, Value place) {
  DsBuilder &b = pixels.b;
  Value base = b.unary(UnaryKind::floor, place), share = b.sub(place, base);
  Value one = b.scalar(b.element(place), 1);
  SmallVector<Tap> taps;
  for (int64_t step = 0; step < 2; ++step) {
    Value at = b.add(base, static_cast<double>(step)), weight = step ? share : b.sub(one, share);
    taps.push_back({pixels.clamped(axis, at), weight, pixels.isInside(axis, at)});
  }
  return taps;
}

/// A place outside of [low, high] mirrored at the ends until it is inside.
static Value reflected(DsBuilder &b, Value x, Value low, Value high) {
  Type type = b.element(x);
  Value range = b.sub(high, low), isPoint = b.binary(BinaryKind::le, range, 0.0);
  Value below = b.binary(BinaryKind::lt, x, low), above = b.binary(BinaryKind::gt, x, high);
  Value distance = b.binary(BinaryKind::max, b.sub(low, x), b.sub(x, high));
  Value width = b.select(isPoint, b.scalar(type, 1), range);
  Value turns = b.unary(UnaryKind::floor, b.div(distance, width)), rest = b.sub(distance, b.mul(turns, width));
  Value isOdd = b.binary(BinaryKind::ne, b.mul(b.unary(UnaryKind::floor, b.div(turns, 2.0)), 2.0), turns);
  Value fromLow = b.binary(BinaryKind::bit_xor, below, isOdd);
  Value mirrored = b.select(fromLow, b.add(low, rest), b.sub(high, rest));
  Value outside = b.binary(BinaryKind::bit_or, below, above);
  return b.select(outside, b.select(isPoint, low, mirrored), x);
}

namespace {
/// GridSample along one axis.
class GridAxis {
public:
  GridAxis(const Pixels &pixels, size_t axis, Type type, std::string padding, bool corners)
      : b(pixels.b), pixels(pixels), axis(axis), type(type), padding(std::move(padding)), corners(corners) {
    low = b.scalar(type, corners ? 0 : -0.5);
    high = corners ? pixels.last(axis, type) : b.sub(pixels.number(pixels.sizes[axis], type), 0.5);
  }

  SmallVector<Tap> taps(Value normal, StringRef mode) {
    Value length = pixels.number(pixels.sizes[axis], type);
    Value place = corners ? b.mul(b.div(b.add(normal, 1.0), 2.0), pixels.last(axis, type))
                          : b.div(b.sub(b.mul(b.add(normal, 1.0), length), 1.0), 2.0);
    if (mode == "nearest")
      place = b.unary(UnaryKind::round, place);
    Value outside =
        b.binary(BinaryKind::bit_or, b.binary(BinaryKind::lt, place, low), b.binary(BinaryKind::gt, place, high));
    if (padding != "zeros")
      place =
          b.select(outside, padding == "border" ? pixels.clamped(axis, place) : reflected(b, place, low, high), place);
    if (mode == "nearest")
      return {pixelAt(b.unary(UnaryKind::floor, place), b.scalar(type, 1))};
    Value base = b.unary(UnaryKind::floor, place), x = b.sub(place, base);
    SmallVector<Tap> result;
    if (mode == "linear") {
      result.push_back(pixelAt(base, b.sub(b.scalar(type, 1), x)));
      result.push_back(pixelAt(b.add(base, 1.0), x));
      return result;
    }
    for (int64_t step = -1; step <= 2; ++step)
      result.push_back(
          pixelAt(b.add(base, static_cast<double>(step)),
                  cubicWeight(b.unary(UnaryKind::abs, b.sub(x, static_cast<double>(step))), step == 0 || step == 1)));
    return result;
  }

private:
  /// Keys' kernel with a = -0.75, by Horner's rule; `isNear` says that the distance is at most 1.
  Value cubicWeight(Value distance, bool isNear) {
    constexpr double a = -0.75;
    const double nearOnes[] = {a + 2, -(a + 3), 0, 1}, farOnes[] = {a, -5 * a, 8 * a, -4 * a};
    Value sum = b.scalar(type, isNear ? nearOnes[0] : farOnes[0]);
    for (int i = 1; i < 4; ++i)
      sum = b.add(b.mul(sum, distance), isNear ? nearOnes[i] : farOnes[i]);
    return sum;
  }
  /// A whole place as the padding mode reads it.
  Tap pixelAt(Value place, Value weight) {
    Value isInside = padding == "zeros" ? pixels.isInside(axis, place) : Value();
    if (padding == "reflection") // toward zero, as an index is made of the mirrored place
      place = b.unary(UnaryKind::floor, b.binary(BinaryKind::max, reflected(b, place, low, high), 0.0));
    return {pixels.clamped(axis, place), weight, isInside};
  }

  DsBuilder &b;
  const Pixels &pixels;
  size_t axis;
  Type type;
  std::string padding;
  bool corners;
  Value low, high;
};
} // namespace

static Values convertGridSample(Node &n) {
  DsBuilder &b = n.b;
  std::string mode = n.text("mode", "linear", {"linear", "nearest", "cubic", "bilinear", "bicubic"});
  std::string padding = n.text("padding_mode", "zeros", {"zeros", "border", "reflection"});
  if (!n.requireRank(0, 3) || !n.requireFloat(1) || n.isRefused())
    return {};
  Value x = n.in(0), grid = n.in(1);
  int64_t rank = b.rank(x), spatial = rank - 2;
  constexpr int64_t axisLimit = 3;
  SizeVector gridSizes = b.sizes(grid), sizes = b.sizes(x);
  if (b.rank(grid) != rank || gridSizes.back() != SizeExpr(spatial) || spatial > axisLimit)
    return n.refuse("expected an operand of 3 to 5 axes and a grid with as many, the last one of " + Twine(spatial) +
                    " coordinates, found " + describe(b.facts(x)) + " and " + describe(b.facts(grid)));
  if (mode == "bilinear" || mode == "bicubic")
    mode = mode.substr(2) == "linear" ? "linear" : "cubic";
  Type type = b.element(x).isF64() ? b.f64() : b.f32();
  SizeExpr points = product(ArrayRef(gridSizes).drop_front().drop_back());
  Value places = b.reshape(b.cast(grid, type), {gridSizes[0], points, spatial});
  Value image = mode == "nearest" ? x : b.cast(x, type);
  if (!image)
    return {};
  Pixels pixels(b, image);
  SmallVector<SmallVector<Tap>> axes;
  for (int64_t axis = 0; axis < spatial; ++axis) { // the grid lists the last axis first
    Value normal = b.dropAxis(b.sliceAxis(places, 2, spatial - 1 - axis, 1), 2);
    axes.push_back(GridAxis(pixels, axis, type, padding, n.flag("align_corners", false)).taps(normal, mode));
  }
  Value sampled;
  if (mode == "nearest")
    combineTaps(pixels, axes, [&](Value pixel, Value) { sampled = pixel; });
  else
    sampled = b.cast(weightedSum(pixels, axes), b.element(x));
  SizeVector target = {sizes[0], sizes[1]};
  target.insert(target.end(), gridSizes.begin() + 1, gridSizes.end() - 1);
  return {b.reshape(b.transpose(sampled, {0, 2, 1}), target)};
}

/// theta [N, r, r + 1] applied to the normalised places of an image of the given size.
static Values convertAffineGrid(Node &n) {
  DsBuilder &b = n.b;
  auto size = n.sizesOf(1, "size");
  if (!size || !n.requireFloat(0) || !n.requireRank(0, 3, 3))
    return {};
  int64_t spatial = static_cast<int64_t>(size->size()) - 2;
  if (spatial != 2 && spatial != 3)
    return n.refuse("input 1 ('size'): expected 4 or 5 sizes, found " + Twine(size->size()));
  bool corners = n.flag("align_corners", false);
  Type type = b.element(n.in(0));
  SizeVector image(size->begin() + 2, size->end()), column = image;
  column.push_back(1);
  SmallVector<Value> parts;
  for (int64_t axis = spatial - 1; axis >= 0; --axis) {
    Value length = b.cast(b.reshape(b.shape({image[axis]}), {}), type), place = b.cast(b.iota(0, {image[axis]}), type);
    Value normal;
    if (corners) { // a single place is the middle
      Value steps = b.sub(length, 1.0), isSingle = b.binary(BinaryKind::le, steps, 0.0);
      Value safe = b.select(isSingle, b.scalar(type, 1), steps);
      normal = b.select(isSingle, b.scalar(type, 0), b.sub(b.div(b.mul(place, 2.0), safe), 1.0));
    } else {
      normal = b.sub(b.div(b.add(b.mul(place, 2.0), 1.0), length), 1.0);
    }
    parts.push_back(b.broadcast(b.alignVector(normal, axis, spatial + 1), column));
  }
  parts.push_back(b.broadcast(b.scalar(type, 1), column));
  if (llvm::is_contained(parts, Value()))
    return {};
  Value base = b.reshape(b.concat(spatial, parts), {product(image), spatial + 1});
  SizeVector target = {(*size)[0]};
  target.insert(target.end(), image.begin(), image.end());
  target.push_back(spatial);
  return {b.reshape(b.matmul(base, n.in(0), false, /*transposeB=*/true), target)};
}

namespace {
/// The samples of all regions along one axis, flat per region.
struct RoiAxis {
  Value place, isCounted; // [regions, bins, samples]
  Value count;            // [regions, 1, 1], a float
  SizeExpr samples;
};
} // namespace

static RoiAxis samplesOf(Node &n, Value start, Value end, int64_t bins, int64_t ratio, bool halfPixel) {
  DsBuilder &b = n.b;
  Type type = b.element(start);
  Value extent = b.sub(end, start);
  if (!halfPixel)
    extent = b.binary(BinaryKind::max, extent, 1.0);
  Value bin = b.div(extent, static_cast<double>(bins));
  RoiAxis axis;
  axis.samples = ratio;
  Value count = b.binary(BinaryKind::max, b.unary(UnaryKind::ceil, bin), 0.0);
  if (ratio > 0) // the same everywhere
    count = b.broadcast(b.scalar(type, static_cast<double>(ratio)), b.sizes(bin));
  else
    axis.samples = computedSize(n, b.reduce(ReduceKind::max, b.cast(count, b.i64()), {0}, false));
  auto perRegion = [&](Value x) { return b.alignVector(x, 0, 3); };
  Value sample = b.alignVector(b.cast(b.iota(0, {axis.samples}), type), 2, 3);
  Value which = b.alignVector(b.cast(b.iota(0, {bins}), type), 1, 3);
  axis.count = perRegion(count);
  Value within = b.div(b.mul(b.add(sample, 0.5), perRegion(bin)), b.binary(BinaryKind::max, axis.count, 1.0));
  axis.place = b.add(b.add(perRegion(start), b.mul(which, perRegion(bin))), within);
  Value counted = b.binary(BinaryKind::lt, sample, axis.count);
  axis.isCounted = b.broadcast(counted, b.sizes(axis.place));
  return axis;
}

static Values convertRoiAlign(Node &n) {
  DsBuilder &b = n.b;
  constexpr int64_t halfPixelSince = 16;
  bool halfPixel = n.version() >= halfPixelSince && n.text("coordinate_transformation_mode", "half_pixel",
                                                           {"half_pixel", "output_half_pixel"}) == "half_pixel";
  bool isMax = n.text("mode", "avg", {"avg", "max"}) == "max";
  int64_t height = n.integer("output_height", 1), width = n.integer("output_width", 1);
  int64_t ratio = n.integer("sampling_ratio", 0);
  if (!n.requireRank(0, 4, 4) || !n.requireRank(1, 2, 2) || !n.requireRank(2, 1, 1) || !n.requireFloat(0) ||
      n.isRefused())
    return {};
  constexpr int64_t limit = 1 << 15;
  if (height < 1 || width < 1 || height > limit || width > limit || ratio < 0 || ratio > limit)
    return n.refuse("expected output sizes from 1 and a sampling ratio from 0, at most 32768 each");
  Type type = b.element(n.in(0)).isF64() ? b.f64() : b.f32();
  Value x = b.cast(n.in(0), type), rois = b.cast(n.in(1), type);
  if (!x || !rois)
    return {};
  SizeVector sizes = b.sizes(x);
  SizeExpr regions = b.sizes(rois)[0];
  auto corner = [&](int64_t column) {
    Value scaled = b.mul(b.dropAxis(b.sliceAxis(rois, 1, column, 1), 1), n.real("spatial_scale", 1));
    return halfPixel ? b.sub(scaled, 0.5) : scaled;
  };
  RoiAxis rows = samplesOf(n, corner(1), corner(3), height, ratio, halfPixel);
  RoiAxis columns = samplesOf(n, corner(0), corner(2), width, ratio, halfPixel);
  // Every sample of the rows with every one of the columns: [regions, height, samples, width, samples].
  SizeVector grid = {regions, height, rows.samples, width, columns.samples};
  auto spread = [&](const RoiAxis &axis, Value value, bool isRow) {
    SizeVector own =
        isRow ? SizeVector{regions, height, axis.samples, 1, 1} : SizeVector{regions, 1, 1, width, axis.samples};
    return b.reshape(b.broadcast(b.reshape(value, own), grid), {regions, product(ArrayRef(grid).drop_front())});
  };
  Pixels pixels(b, x);
  pixels.images = b.gather(0, b.iota(0, {sizes[0]}), n.in(2));
  if (!pixels.images)
    return {};
  Value isSampled =
      b.binary(BinaryKind::bit_and, spread(rows, rows.isCounted, true), spread(columns, columns.isCounted, false));
  Value isNear;
  SmallVector<SmallVector<Tap>> axes;
  for (bool isRow : {true, false}) {
    size_t which = isRow ? 0 : 1;
    Value place = spread(isRow ? rows : columns, isRow ? rows.place : columns.place, isRow);
    Value size = pixels.number(pixels.sizes[which], type);
    Value within =
        b.binary(BinaryKind::bit_and, b.binary(BinaryKind::ge, place, -1.0), b.binary(BinaryKind::le, place, size));
    isNear = isNear ? b.binary(BinaryKind::bit_and, isNear, within) : within;
    axes.push_back(linearTaps(pixels, which, pixels.clamped(which, place)));
    for (Tap &tap : axes.back())
      tap.isInside = {}; // behind the last pixel it is met again, with a weight of 0
  }
  SizeVector perBin = {regions, height, rows.samples, width, columns.samples, sizes[1]};
  Value zero = b.scalar(type, 0), counts = b.mul(rows.count, columns.count), pooled; // [regions, 1, 1]
  Value isUsed = b.insertAxis(b.binary(BinaryKind::bit_and, isSampled, isNear), 2);
  if (isMax) { // of the weighted pixels, which the standard does not add up here
    Value best, none = b.scalar(type, -HUGE_VAL);
    combineTaps(pixels, axes, [&](Value pixel, Value weight) {
      Value part = b.mul(pixel, b.insertAxis(weight, 2));
      best = best ? b.binary(BinaryKind::max, best, part) : part;
    });
    best = b.select(b.insertAxis(isSampled, 2), b.select(isUsed, best, zero), none);
    pooled = b.reduce(ReduceKind::max, b.reshape(best, perBin), {2, 4}, false);
    Value isEmpty = b.binary(BinaryKind::le, counts, 0.0);
    pooled = b.select(b.insertAxis(isEmpty, 3), zero, pooled);
  } else {
    Value sums =
        b.reduce(ReduceKind::sum, b.reshape(b.select(isUsed, weightedSum(pixels, axes), zero), perBin), {2, 4}, false);
    pooled = b.div(sums, b.insertAxis(b.binary(BinaryKind::max, counts, 1.0), 3));
  }
  return {b.cast(b.transpose(pooled, {0, 3, 1, 2}), b.element(n.in(0)))};
}

/// A convolution that reads each element of its window at a place of its own.
static Values convertDeformConv(Node &n) {
  DsBuilder &b = n.b;
  if (!n.requireRank(0, 4, 4) || !n.requireRank(1, 4, 4) || !n.requireRank(2, 4, 4) || !n.requireFloat(0))
    return {};
  Value x = n.in(0), weight = n.in(1), offset = n.in(2);
  SizeVector sizes = b.sizes(x), weightSizes = b.sizes(weight), offsets = b.sizes(offset);
  auto kernelHeight = weightSizes[2].constant(), kernelWidth = weightSizes[3].constant();
  int64_t groups = n.integer("group", 1), offsetGroups = n.integer("offset_group", 1);
  if (!kernelHeight || !kernelWidth)
    return n.refuse("input 1: expected static kernel sizes, found " + describe(b.facts(weight)));
  auto windows = readWindows(n, {*kernelHeight, *kernelWidth}, 2);
  if (!windows)
    return {};
  auto divides = [](const SizeExpr &size, int64_t by) {
    auto known = size.constant();
    return known && by > 0 && *known % by == 0;
  };
  int64_t taps = *kernelHeight * *kernelWidth;
  if (!divides(sizes[1], groups) || !divides(sizes[1], offsetGroups) || !divides(weightSizes[0], groups) ||
      weightSizes[1] * SizeExpr(groups) != sizes[1] || offsets[1] != SizeExpr(offsetGroups * taps * 2))
    return n.refuse("expected channels that the groups divide and 2 offsets for each of " + Twine(taps) +
                    " kernel elements and offset group, found " + describe(b.facts(x)) + ", " +
                    describe(b.facts(weight)) + " and " + describe(b.facts(offset)));
  SizeExpr batch = sizes[0] * SizeExpr(offsetGroups), height = offsets[2], width = offsets[3];
  int64_t channels = *sizes[1].constant() / offsetGroups;
  Value images = b.reshape(x, {batch, channels, sizes[2], sizes[3]});
  if (!images)
    return {};
  Pixels pixels(b, images);
  // [batch, kernel height, kernel width, 2, height, width]
  Value moved = b.reshape(offset, {batch, *kernelHeight, *kernelWidth, 2, height, width});
  SizeExpr points = SizeExpr(taps) * height * width;
  SmallVector<SmallVector<Tap>> axes;
  for (int64_t axis = 0; axis < 2; ++axis) {
    auto ramp = [&](const SizeExpr &count, int64_t step, int64_t at) {
      return b.alignVector(b.mul(b.cast(b.iota(0, {count}), b.element(x)), static_cast<double>(step)), at, 5);
    };
    Value regular = b.add(ramp(axis ? width : height, windows->strides[axis], 3 + axis),
                          ramp(windows->kernel[axis], windows->dilations[axis], 1 + axis));
    Value own = b.dropAxis(b.sliceAxis(moved, 3, axis, 1), 3);
    Value place = b.sub(b.add(own, regular), static_cast<double>(windows->pads[axis]));
    axes.push_back(linearTaps(pixels, axis, b.reshape(place, {batch, points})));
  }
  Value sampled = weightedSum(pixels, axes); // [batch, points, channels]
  if (n.has(4))
    sampled = b.mul(sampled, b.reshape(n.in(4), {batch, points, 1}));
  int64_t perGroup = *sizes[1].constant() / groups;
  Value columns =
      b.reshape(b.transpose(sampled, {0, 2, 1}), {sizes[0], groups, SizeExpr(perGroup * taps), height * width});
  SizeExpr filters = SizeExpr::floorDiv(weightSizes[0], groups);
  Value rows = b.reshape(weight, {1, groups, filters, SizeExpr(perGroup * taps)});
  Value result = b.reshape(b.matmul(rows, columns), {sizes[0], weightSizes[0], height, width});
  if (!n.has(3))
    return {result};
  Value bias = vectorAlong(n, 3, n.in(3), 1, 4, {weightSizes[0], "filter"});
  return {bias ? b.add(result, bias) : Value()};
}

void addSampling(PatternRegistry &registry) {
  registry.add("AffineGrid", 20, 2, convertAffineGrid).inFloat32 = true;
  registry.add("GridSample", 16, 2, convertGridSample);
  registry.add("RoiAlign", 10, 3, convertRoiAlign);
  registry.add("DeformConv", 19, 3, convertDeformConv);
}

} // namespace deepstride::onnx
