// Col2Im: windows [batch, channels * taps, places] added up where they overlap.
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"
#include "frontends/onnx/convert/Windows.h"

using namespace mlir;

namespace deepstride::onnx {

namespace {
/// An image that is put together from windows. Per spatial axis: how many taps and windows, and what is around them.
struct Overlap {
  Node &n;
  const Windows &windows;
  SizeVector image, block, count, padded;
  SizeExpr batch, channels;

  int64_t rank() const { return static_cast<int64_t>(image.size()); }
  Value byLayers();
  Value byPlaces();
};
} // namespace

/// Taps that are whole strides apart make a layer: windows that lie side by side, an image of their own. Layers are
/// added up, as many as windows meet in a pixel, in the order of the taps. Null where strides and dilations do not
/// allow it, or where there would be too many.
Value Overlap::byLayers() {
  constexpr int64_t mostLayers = 64;
  DsBuilder &b = n.b;
  Type type = b.element(n.in(0));
  SmallVector<int64_t> strides, steps, layers;
  SizeVector apart = {batch, channels}, high(2), split = {batch, channels};
  int64_t total = 1;
  for (int64_t i = 0; i < rank(); ++i) {
    auto taps = block[i].constant();
    if (!taps || *taps < 1 || (windows.strides[i] > 1 && windows.dilations[i] > 1))
      return {};
    strides.push_back(windows.strides[i]);
    steps.push_back(strides[i] > 1 ? strides[i] : windows.dilations[i]);
    layers.push_back((*taps + strides[i] - 1) / strides[i]);
    total *= layers[i];
    if (total > mostLayers)
      return {};
    apart.push_back(*taps);
    high.push_back(layers[i] * strides[i] - *taps); // the last layer may lack some
    split.push_back(layers[i]);
    split.push_back(strides[i]);
  }
  if (type.isInteger(1))
    return {};
  llvm::append_range(apart, count);
  llvm::append_range(split, count);
  high.resize(apart.size());
  Value zero = b.scalar(type, 0), taps = b.reshape(n.in(0), apart), sum = zero;
  if (!llvm::all_of(high, [](const SizeExpr &size) { return size.isConstant(0); }))
    taps = b.pad(ds::PadKind::constant, taps, zero, SizeVector(high.size()), high);
  // [batch, channels, layers..., pixels of a layer...]
  SmallVector<int64_t> order = {0, 1};
  SizeVector images = {batch, channels}, whole = images;
  for (int64_t i = 0; i < rank(); ++i) {
    order.push_back(2 + 2 * i);
    images.push_back(layers[i]);
  }
  for (int64_t i = 0; i < rank(); ++i) {
    order.append({2 + 2 * rank() + i, 3 + 2 * i});
    images.push_back(count[i] * SizeExpr(strides[i]));
  }
  if (llvm::any_of(strides, [](int64_t stride) { return stride > 1; }))
    taps = b.transpose(b.reshape(taps, split), order);
  taps = b.reshape(taps, images);
  llvm::append_range(whole, image);
  for (int64_t layer = 0; layer < total && taps; ++layer) {
    // All other layers are cropped, and the rest is moved to its place.
    SizeVector low(images.size()), behind(images.size());
    for (int64_t i = rank(), rest = layer; i-- > 0; rest /= layers[i]) {
      int64_t number = rest % layers[i], pixels = 2 + rank() + i;
      low[2 + i] = -number;
      behind[2 + i] = number + 1 - layers[i];
      low[pixels] = number * steps[i] - windows.pads[i];
      behind[pixels] = image[i] - images[pixels] - low[pixels];
    }
    sum = b.add(sum, b.reshape(b.pad(ds::PadKind::constant, taps, zero, low, behind), whole));
  }
  return sum;
}

/// One addition for each element of the windows.
Value Overlap::byPlaces() {
  DsBuilder &b = n.b;
  int64_t spatial = rank();
  Value flat; // over [block..., windows...]
  for (int64_t i = 0; i < spatial; ++i) {
    auto ramp = [&](const SizeExpr &length, int64_t step, int64_t axis) {
      return b.alignVector(b.mul(b.iota(0, {length}), static_cast<double>(step)), axis, 2 * spatial);
    };
    Value place = b.add(ramp(block[i], windows.dilations[i], i), ramp(count[i], windows.strides[i], spatial + i));
    flat = flat ? b.add(b.mul(flat, b.reshape(b.shape({padded[i]}), {})), place) : place;
  }
  SizeExpr taps = product(block), places = product(count);
  SizeVector columns = {batch, channels, taps * places};
  Value indices = b.broadcast(b.reshape(flat, {taps * places}), columns), values = b.reshape(n.in(0), columns);
  Value empty = b.broadcast(b.scalar(b.element(n.in(0)), 0), {batch, channels, product(padded)});
  Value sums =
      b.create<ds::ScatterElementsOp>({empty, indices, values}, ds::ScatterKind::add, 2, empty, indices, values);
  SizeVector whole = {batch, channels}, starts(2), result = whole;
  whole.insert(whole.end(), padded.begin(), padded.end());
  for (int64_t i = 0; i < spatial; ++i)
    starts.push_back(windows.pads[i]);
  result.insert(result.end(), image.begin(), image.end());
  return b.slice(b.reshape(sums, whole), starts, result, SmallVector<int64_t>(spatial + 2, 1));
}

/// Adds every element of every window to the place of the image that it came from.
static Values convertCol2Im(Node &n) {
  DsBuilder &b = n.b;
  auto image = n.sizesOf(1, "image_shape"), block = n.sizesOf(2, "block_shape");
  if (!image || !block || !n.requireRank(0, 3, 3))
    return {};
  int64_t spatial = static_cast<int64_t>(image->size());
  if (block->size() != image->size() || spatial < 1)
    return n.refuse("expected an image shape and a block shape of one length, found " + Twine(image->size()) + " and " +
                    Twine(block->size()));
  auto windows = readWindows(n, SmallVector<int64_t>(spatial, 1), spatial);
  if (!windows)
    return {};
  SizeVector sizes = b.sizes(n.in(0)), padded, count;
  for (int64_t i = 0; i < spatial; ++i) {
    padded.push_back((*image)[i] + SizeExpr(windows->pads[i] + windows->pads[spatial + i]));
    SizeExpr extent = ((*block)[i] - SizeExpr(1)) * SizeExpr(windows->dilations[i]) + SizeExpr(1);
    count.push_back(SizeExpr::floorDiv(padded[i] - extent, windows->strides[i]) + SizeExpr(1));
  }
  SizeExpr taps = product(*block), channels = SizeExpr::floorDiv(sizes[1], taps);
  auto require = [&](int64_t axis, const SizeExpr &size) {
    auto found = sizes[axis].constant(), expected = size.constant();
    if (found && expected && *found != *expected)
      n.refuse("input 0: axis " + Twine(axis) + ": expected " +
               (axis == 1 ? "channels times taps, a multiple of " + Twine(*taps.constant())
                          : "one place for each window, " + Twine(*expected)) +
               ", found " + Twine(*found));
    else if (sizes[axis] != size)
      b.requireEqual(sizes[axis], size);
  };
  require(1, channels * taps);
  require(2, product(count));
  if (n.isRefused())
    return {};
  Overlap overlap{n, *windows, *image, *block, count, padded, sizes[0], channels};
  Value sum = overlap.byLayers();
  return {sum || n.isRefused() ? sum : overlap.byPlaces()};
}

void addOverlaps(PatternRegistry &registry) { registry.add("Col2Im", 18, 3, convertCol2Im); }

} // namespace deepstride::onnx
