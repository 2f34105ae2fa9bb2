// Pooling over windows and over whole spatial extents.
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/Windows.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;

namespace {
/// Where one tap of the windows reads along one axis, for every window.
struct TapPlaces {
  Value place, isInside;
};
} // namespace

static TapPlaces placesOf(DsBuilder &b, const SizeExpr &windows, const SizeExpr &size, int64_t stride,
                          const SizeExpr &offset) {
  Value place = b.add(b.mul(b.iota(0, {windows}), static_cast<double>(stride)), b.reshape(b.shape({offset}), {}));
  Value end = b.reshape(b.shape({size}), {});
  return {place,
          b.binary(BinaryKind::bit_and, b.binary(BinaryKind::ge, place, 0.0), b.binary(BinaryKind::lt, place, end))};
}

/// The flat position in x of the first greatest element of each window: the taps of all windows are compared one after
/// the other. `storage_order` 1 counts the spatial axes with the first one fastest.
static Value indicesOfMax(Node &n, Value x, const Windows &windows, const SizeVector &results) {
  DsBuilder &b = n.b;
  int64_t rank = b.rank(x), spatial = rank - 2, taps = 1;
  constexpr int64_t tapLimit = 256;
  for (int64_t size : windows.kernel)
    taps = std::min(taps * size, tapLimit + 1);
  if (taps > tapLimit)
    return n.refuse("output 1 ('Indices'): expected windows of at most " + Twine(tapLimit) + " elements");
  SizeVector sizes = b.sizes(x), low(rank), high(rank);
  for (int64_t i = 0; i < spatial; ++i) { // so that every tap of every window exists
    int64_t extent = (windows.kernel[i] - 1) * windows.dilations[i] + 1;
    low[2 + i] = windows.before(i);
    high[2 + i] = (results[2 + i] - SizeExpr(1)) * SizeExpr(windows.strides[i]) + SizeExpr(extent) - windows.before(i) -
                  sizes[2 + i];
  }
  Value padded = b.pad(ds::PadKind::constant, x, b.scalar(b.element(x), 0), low, high);
  bool isColumnMajor = n.flag("storage_order", false), isFloat = isa<FloatType>(b.element(x));
  Value lines = b.add(b.mul(b.alignVector(b.iota(0, {sizes[0]}), 0, rank), b.reshape(b.shape({sizes[1]}), {})),
                      b.alignVector(b.iota(0, {sizes[1]}), 1, rank));
  Value best, index;
  for (int64_t tap = 0; tap < taps && padded; ++tap) {
    SizeVector starts(rank);
    SmallVector<int64_t> steps(rank, 1);
    Value isInside, position;
    int64_t rest = tap;
    SmallVector<TapPlaces> places(spatial);
    for (int64_t i = spatial; i-- > 0; rest /= windows.kernel[i]) {
      int64_t offset = rest % windows.kernel[i] * windows.dilations[i];
      starts[2 + i] = offset;
      steps[2 + i] = windows.strides[i];
      places[i] = placesOf(b, results[2 + i], sizes[2 + i], windows.strides[i], SizeExpr(offset) - windows.before(i));
      Value aligned = b.alignVector(places[i].isInside, 2 + i, rank);
      isInside = isInside ? b.binary(BinaryKind::bit_and, isInside, aligned) : aligned;
    }
    for (int64_t step = 0; step < spatial; ++step) {
      int64_t i = isColumnMajor ? spatial - 1 - step : step;
      Value aligned = b.alignVector(places[i].place, 2 + i, rank);
      position = position ? b.add(b.mul(position, b.reshape(b.shape({sizes[2 + i]}), {})), aligned) : aligned;
    }
    Value whole = b.reshape(b.shape({product(ArrayRef(sizes).drop_front(2))}), {});
    position = b.add(b.mul(lines, whole), position);
    Value value = b.slice(padded, starts, results, steps);
    if (!index) {
      best = value;
      index = b.select(isInside, position, b.scalar(b.i64(), -1));
      continue;
    }
    Value isBetter = b.binary(BinaryKind::gt, value, best);
    if (isFloat) // the first NaN is greatest
      isBetter = b.binary(
          BinaryKind::bit_or, isBetter,
          b.binary(BinaryKind::bit_and, b.unary(ds::UnaryKind::is_nan, value), b.binary(BinaryKind::eq, best, best)));
    isBetter = b.binary(BinaryKind::bit_or, isBetter, b.binary(BinaryKind::lt, index, 0.0));
    isBetter = b.binary(BinaryKind::bit_and, isBetter, isInside);
    best = b.select(isBetter, value, best);
    index = b.select(isBetter, position, index);
  }
  return index;
}

/// What no window takes for its greatest element while it has another.
static Value leastOf(DsBuilder &b, Type type) {
  if (auto real = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = real.getFloatSemantics();
    APFloat least = APFloat::semanticsHasInf(semantics) ? APFloat::getInf(semantics, /*Negative=*/true)
                                                        : APFloat::getLargest(semantics, /*Negative=*/true);
    return b.constant(DenseElementsAttr::get(RankedTensorType::get({}, type), least));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  APInt least = type.isUnsignedInteger() ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  return b.constant(DenseElementsAttr::get(RankedTensorType::get({}, type), least));
}

namespace {
/// The windows of x, and what is pooled of them; null after a diagnostic.
struct PooledWindows {
  std::optional<Windows> windows;
  Value value;
};
} // namespace

static PooledWindows poolWindows(Node &n, Value x, ds::PoolKind kind) {
  auto kernel = n.requiredIntegers("kernel_shape");
  if (!kernel || !n.requireRank(0, 3))
    return {};
  SizeVector sizes = n.b.sizes(x);
  auto windows = readWindows(n, *kernel, n.b.rank(x) - 2);
  if (!windows || !resolveAutoPad(n, *windows, ArrayRef(sizes).drop_front(2)))
    return {};
  int64_t exponent = n.integer("p", 2);
  if (exponent < 1) {
    n.refuse("attribute 'p': expected at least 1, found " + Twine(exponent));
    return {};
  }
  bool countsPads = n.flag("count_include_pad", false), isDynamic = !windows->low.empty();
  auto poolPadded = [&](Value whole, bool includesPads) {
    Value fill = kind == ds::PoolKind::max ? leastOf(n.b, n.b.element(x)) : n.b.scalar(n.b.element(x), 0);
    Value operand = padded(n.b, whole, *windows, fill);
    return n.b.create<ds::PoolOp>({operand}, kind, operand, windows->kernel, windows->strides, windows->pads,
                                  windows->dilations, n.flag("ceil_mode", false), includesPads, exponent);
  };
  bool isShare = isDynamic && kind == ds::PoolKind::average && !countsPads;
  Value pooled = poolPadded(x, countsPads || isShare);
  if (isShare) { // over the share of each window that lies inside
    SizeVector plane = sizes;
    plane[0] = plane[1] = 1;
    pooled = n.b.div(pooled, poolPadded(n.b.broadcast(n.b.scalar(n.b.element(x), 1), plane), true));
  }
  return {windows, pooled};
}

Value averagePool(Node &n, Value x) { return poolWindows(n, x, ds::PoolKind::average).value; }

static Convert pool(ds::PoolKind kind) {
  return [kind](Node &n) -> Values {
    PooledWindows pooled = poolWindows(n, n.in(0), kind);
    if (!pooled.value || !n.yields(1))
      return {pooled.value};
    return {pooled.value, indicesOfMax(n, n.in(0), *pooled.windows, n.b.sizes(pooled.value))};
  };
}

static Convert globalPool(ds::ReduceKind kind) {
  return [kind](Node &n) -> Values {
    if (!n.requireRank(0, 2))
      return {};
    return {n.b.reduce(kind, n.in(0), axesFrom(2, n.b.rank(n.in(0))))};
  };
}

static Values convertGlobalLpPool(Node &n) {
  int64_t p = n.integer("p", 2);
  if (p != 1 && p != 2)
    return n.refuse("attribute 'p': expected 1 or 2, found " + Twine(p));
  return globalPool(p == 1 ? ds::ReduceKind::l1 : ds::ReduceKind::l2)(n);
}

/// Every value at the position that it had before pooling, zeros elsewhere. Positions count in the shape that the
/// windows imply; an output shape adds (or cuts) places at the ends.
static Values convertMaxUnpool(Node &n) {
  DsBuilder &b = n.b;
  auto kernel = n.requiredIntegers("kernel_shape");
  if (!kernel || !n.requireRank(0, 3))
    return {};
  int64_t rank = b.rank(n.in(0)), spatial = rank - 2;
  auto windows = readWindows(n, *kernel, spatial);
  auto asked = n.has(2) ? n.sizesOf(2, "output_shape") : std::nullopt;
  if (!windows || (n.has(2) && !asked))
    return {};
  if (asked && static_cast<int64_t>(asked->size()) != rank)
    return n.refuse("input 2 ('output_shape'): expected " + Twine(rank) + " sizes, found " + Twine(asked->size()));
  SizeVector sizes = b.sizes(n.in(0)), implied = sizes, high(rank);
  for (int64_t i = 0; i < spatial; ++i)
    implied[2 + i] = (sizes[2 + i] - SizeExpr(1)) * SizeExpr(windows->strides[i]) +
                     SizeExpr(windows->kernel[i] - windows->pads[i] - windows->pads[spatial + i]);
  Value zero = b.scalar(b.element(n.in(0)), 0);
  Value places = b.reshape(n.in(1), {product(sizes)}), values = b.reshape(n.in(0), {product(sizes)});
  Value empty = b.broadcast(zero, {product(implied)});
  Value flat =
      b.create<ds::ScatterElementsOp>({empty, places, values}, ds::ScatterKind::assign, 0, empty, places, values);
  Value result = b.reshape(flat, implied);
  if (!asked)
    return {result};
  for (int64_t i = 0; i < rank; ++i)
    high[i] = (*asked)[i] - implied[i];
  return {b.pad(ds::PadKind::constant, result, zero, SizeVector(rank), high)};
}

void addPooling(PatternRegistry &registry) {
  registry.add("MaxPool", 1, 1, pool(ds::PoolKind::max));
  registry.add("AveragePool", 1, 1, pool(ds::PoolKind::average));
  registry.add("LpPool", 2, 1, pool(ds::PoolKind::lp));
  registry.add("MaxUnpool", 9, 2, convertMaxUnpool);
  registry.add("GlobalMaxPool", 1, 1, globalPool(ds::ReduceKind::max));
  registry.add("GlobalAveragePool", 1, 1, globalPool(ds::ReduceKind::mean));
  registry.add("GlobalLpPool", 2, 1, convertGlobalLpPool);
}

} // namespace deepstride::onnx
