// Convolution and its transpose.
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/Windows.h"

using namespace mlir;

namespace deepstride::onnx {

/// The spatial sizes of a weight, which must be static and those that the node states.
static std::optional<SmallVector<int64_t>> kernelOf(Node &n, ArrayRef<SizeExpr> weight) {
  SmallVector<int64_t> kernel;
  for (const SizeExpr &size : weight.drop_front(2)) {
    if (!size.constant())
      return n.refuse("input 1 ('W'): expected static kernel sizes, found " + size.brief());
    kernel.push_back(*size.constant());
  }
  auto stated = n.integers("kernel_shape");
  if (stated && ArrayRef(*stated) != ArrayRef(kernel))
    return n.refuse("attribute 'kernel_shape': expected the kernel of the weight, found another");
  return kernel;
}

static Value convolve(DsBuilder &b, Value x, Value weight, Value bias, const Windows &windows, int64_t groups) {
  SmallVector<Value> operands = {x, weight};
  if (bias)
    operands.push_back(bias);
  return b.create<ds::ConvOp>(operands, x, weight, bias, windows.strides, windows.pads, windows.dilations, groups);
}

static Values convertConv(Node &n) {
  int64_t rank = n.b.rank(n.in(0));
  if (!n.requireRank(0, 3) || !n.requireRank(1, rank, rank))
    return {};
  SizeVector sizes = n.b.sizes(n.in(0)), weight = n.b.sizes(n.in(1));
  auto kernel = kernelOf(n, weight);
  auto windows = kernel ? readWindows(n, *kernel, rank - 2) : std::nullopt;
  if (!windows || !resolveAutoPad(n, *windows, ArrayRef(sizes).drop_front(2)))
    return {};
  Value x = padded(n.b, n.in(0), *windows, n.b.scalar(n.b.element(n.in(0)), 0));
  return {convolve(n.b, x, n.in(1), n.in(2), *windows, n.integer("group", 1))};
}

/// [C, M / groups, kernel] as the weight of the equivalent convolution: [M, C / groups, flipped kernel].
static Value transposedWeight(DsBuilder &b, Value weight, int64_t groups) {
  SizeVector sizes = b.sizes(weight), starts(sizes.size());
  SmallVector<int64_t> steps(sizes.size(), 1);
  for (size_t axis = 2; axis < sizes.size(); ++axis) {
    starts[axis] = sizes[axis] - SizeExpr(1);
    steps[axis] = -1;
  }
  Value flipped = b.slice(weight, starts, sizes, steps);
  SizeExpr perGroup = SizeExpr::floorDiv(sizes[0], groups);
  SizeVector split = {groups, perGroup}, merged = {sizes[1] * SizeExpr(groups), perGroup};
  split.insert(split.end(), sizes.begin() + 1, sizes.end());
  merged.insert(merged.end(), sizes.begin() + 2, sizes.end());
  SmallVector<int64_t> permutation = axesFrom(0, static_cast<int64_t>(split.size()));
  std::swap(permutation[1], permutation[2]);
  return b.reshape(b.transpose(b.reshape(flipped, split), permutation), merged);
}

/// `stride - 1` zeros between the elements of each spatial axis.
static Value spread(DsBuilder &b, Value x, ArrayRef<int64_t> strides) {
  Value zero = b.scalar(b.element(x), 0);
  for (auto [index, stride] : llvm::enumerate(strides)) {
    int64_t axis = static_cast<int64_t>(index) + 2;
    if (stride == 1 || !x)
      continue;
    SizeVector sizes = b.sizes(x), low(sizes.size() + 1), high = low;
    SizeExpr count = sizes[axis];
    high[axis + 1] = stride - 1;
    sizes[axis] = count * SizeExpr(stride);
    Value filled = b.reshape(b.pad(ds::PadKind::constant, b.insertAxis(x, axis + 1), zero, low, high), sizes);
    x = b.sliceAxis(filled, axis, 0, count * SizeExpr(stride) - SizeExpr(stride - 1));
  }
  return x;
}

/// The padding that the equivalent convolution has, from pads, output_padding, output_shape and auto_pad.
static std::optional<std::pair<SizeVector, SizeVector>> transposedPads(Node &n, const Windows &windows,
                                                                       ArrayRef<SizeExpr> sizes) {
  size_t spatial = windows.kernel.size();
  auto extra = n.integers("output_padding").value_or(SmallVector<int64_t>(spatial, 0));
  auto shape = n.integers("output_shape");
  std::string mode = n.text("auto_pad", "NOTSET", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"});
  if (n.isRefused())
    return std::nullopt;
  if (extra.size() != spatial || (shape && shape->size() != spatial))
    return n.refuse("attributes 'output_padding' and 'output_shape': expected one number per spatial axis");
  SizeVector low, high;
  for (size_t i = 0; i < spatial; ++i) {
    SizeExpr extent = (windows.kernel[i] - 1) * windows.dilations[i];
    SizeExpr begin = windows.pads[i], end = windows.pads[spatial + i];
    bool isSame = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (shape || isSame) {
      SizeExpr wanted = shape ? SizeExpr((*shape)[i]) : sizes[2 + i] * SizeExpr(windows.strides[i]);
      SizeExpr total =
          (sizes[2 + i] - SizeExpr(1)) * SizeExpr(windows.strides[i]) + extent + SizeExpr(1 + extra[i]) - wanted;
      SizeExpr half = SizeExpr::floorDiv(total, 2);
      begin = mode == "SAME_UPPER" ? half : total - half;
      end = total - begin;
    } else if (mode == "VALID") {
      begin = end = 0;
    }
    low.push_back(extent - begin);
    high.push_back(extent - end + SizeExpr(extra[i]));
  }
  return std::pair(low, high);
}

/// Whether the result is a convolution's whose filters give the pixels of one block of strides each: the kernel is
/// whole strides long, and `low` and `high` only crop.
static bool isOfBlocks(const Windows &windows, ArrayRef<SizeExpr> low, ArrayRef<SizeExpr> high) {
  bool hasStride = false;
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    hasStride |= windows.strides[i] > 1;
    if (windows.dilations[i] != 1 || windows.kernel[i] % windows.strides[i] != 0 ||
        !(SizeExpr(windows.kernel[i] - 1) - low[i]).isKnownNonNegative() ||
        !(SizeExpr(windows.kernel[i] - 1) - high[i]).isKnownNonNegative())
      return false;
  }
  return hasStride;
}

/// The transposed convolution without zeros between the elements (Shi et al., "Real-time single image and video
/// super-resolution using an efficient sub-pixel convolutional neural network", 2016, section 3.2): an element of the
/// operand meets as many taps as a kernel has strides, once for each of the places that a block of strides has. A
/// convolution computes the places as channels, which are then laid out side by side and cropped.
static Value convolveBlocks(DsBuilder &b, Value x, Value weight, Value bias, const Windows &windows,
                            ArrayRef<SizeExpr> low, ArrayRef<SizeExpr> high, int64_t groups) {
  size_t spatial = windows.kernel.size();
  weight = transposedWeight(b, weight, groups); // [M, C / groups, flipped kernel]
  if (!weight)
    return {};
  SizeVector sizes = b.sizes(weight), split = {sizes[0], sizes[1]}, starts = {0, 0}, merged = {sizes[0], sizes[1]};
  SizeExpr filters = sizes[0];
  SmallVector<int64_t> permutation = {0}, taps = {1}, steps = {1, 1}, pads, ones(spatial, 1);
  int64_t places = 1;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t stride = windows.strides[i], count = windows.kernel[i] / stride, axis = 2 + 2 * static_cast<int64_t>(i);
    llvm::append_range(split, ArrayRef<SizeExpr>{count, stride});
    llvm::append_range(starts, ArrayRef<SizeExpr>{0, stride - 1}); // places were flipped with the taps
    llvm::append_range(steps, ArrayRef<int64_t>{1, -1});
    merged.push_back(count);
    permutation.push_back(axis + 1);
    taps.push_back(axis);
    pads.push_back(count - 1);
    places *= stride;
  }
  llvm::append_range(permutation, taps);
  llvm::append_range(pads, SmallVector<int64_t>(pads));
  merged[0] = filters * SizeExpr(places);
  Value blocks = b.slice(b.reshape(weight, split), starts, split, steps);
  blocks = b.reshape(b.transpose(blocks, permutation), merged);
  if (bias && blocks) // each filter's, for all of its places
    bias = b.reshape(b.broadcast(b.reshape(bias, {b.sizes(bias)[0], 1}), {b.sizes(bias)[0], places}),
                     {b.sizes(bias)[0] * SizeExpr(places)});
  Value y = convolve(b, x, blocks, bias, {SmallVector<int64_t>(merged.size() - 2), ones, ones, pads, {}, {}}, groups);
  if (!y)
    return {};
  SizeVector found = b.sizes(y), apart = {found[0], filters}, joined = apart;
  SmallVector<int64_t> beside = {0, 1};
  for (size_t i = 0; i < spatial; ++i) {
    apart.push_back(windows.strides[i]);
    joined.push_back(found[2 + i] * SizeExpr(windows.strides[i]));
    llvm::append_range(beside, ArrayRef<int64_t>{static_cast<int64_t>(2 + spatial + i), static_cast<int64_t>(2 + i)});
  }
  apart.insert(apart.end(), found.begin() + 2, found.end());
  y = b.reshape(b.transpose(b.reshape(y, apart), beside), joined);
  SizeVector before(2), after(2);
  for (size_t i = 0; i < spatial; ++i) {
    before.push_back(low[i] - SizeExpr(windows.kernel[i] - 1));
    after.push_back(high[i] - SizeExpr(windows.kernel[i] - 1));
  }
  return b.pad(ds::PadKind::constant, y, b.scalar(b.element(y), 0), before, after);
}

/// A convolution of the spread operand with the flipped weight, fully padded.
static Values convertConvTranspose(Node &n) {
  int64_t rank = n.b.rank(n.in(0)), groups = n.integer("group", 1);
  if (!n.requireRank(0, 3) || !n.requireRank(1, rank, rank))
    return {};
  auto kernel = kernelOf(n, n.b.sizes(n.in(1)));
  auto windows = kernel ? readWindows(n, *kernel, rank - 2) : std::nullopt;
  auto pads = windows ? transposedPads(n, *windows, n.b.sizes(n.in(0))) : std::nullopt;
  if (!pads)
    return {};
  if (groups < 1)
    return n.refuse("attribute 'group': expected at least 1, found " + Twine(groups));
  auto &[low, high] = *pads;
  if (isOfBlocks(*windows, low, high))
    return {convolveBlocks(n.b, n.in(0), n.in(1), n.in(2), *windows, low, high, groups)};
  low.insert(low.begin(), 2, 0);
  high.insert(high.begin(), 2, 0);
  Value zero = n.b.scalar(n.b.element(n.in(0)), 0);
  Value padded = n.b.pad(ds::PadKind::constant, spread(n.b, n.in(0), windows->strides), zero, low, high);
  Windows dense = {windows->kernel,
                   SmallVector<int64_t>(rank - 2, 1),
                   windows->dilations,
                   SmallVector<int64_t>(2 * (rank - 2), 0),
                   {},
                   {}};
  return {convolve(n.b, padded, transposedWeight(n.b, n.in(1), groups), n.in(2), dense, groups)};
}

void addConvolutions(PatternRegistry &registry) {
  registry.add("Conv", 1, 2, convertConv);
  registry.add("ConvTranspose", 1, 2, convertConvTranspose);
}

} // namespace deepstride::onnx
