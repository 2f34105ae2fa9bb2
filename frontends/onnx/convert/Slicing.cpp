// Boxes of tensors: Slice, Split, Pad. Bounds may be size expressions; clamping them to the axis is part of ONNX.
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"
#include "frontends/onnx/convert/RunTimeLists.h"

using namespace mlir;

namespace deepstride::onnx {

namespace {
struct AxisSlice {
  SizeExpr start, size;
};
} // namespace

/// ONNX writes "to the end" as any number of this size or more.
constexpr int64_t unbounded = INT32_MAX;

/// A bound counted from the front and clamped to [low, high]: to [0, d] walking forwards; backwards, a start to
/// [0, d - 1], where NumPy's may be -1, and an end to [-1, d - 1]. An axis without elements has no start but -1 then.
/// The first and the last element of an axis are taken to exist; the slice op records that as a condition.
static SizeExpr clampBound(const SizeExpr &bound, const SizeExpr &size, bool isForward, bool isStart) {
  SizeExpr low = isForward || isStart ? 0 : -1, high = isForward ? size : size - SizeExpr(1);
  bool mayCross = !isForward && isStart; // low may lie above high
  if (auto value = bound.constant()) {
    if (*value >= unbounded)
      return high;
    if (*value <= -unbounded)
      return mayCross ? SizeExpr::min(low, high) : low;
    if (*value == 0 || *value == 1 || *value == -1) {
      SizeExpr fromFront = *value < 0 ? size + bound : bound;
      return size.constant() ? SizeExpr::min(SizeExpr::max(fromFront, low), high) : fromFront;
    }
    SizeExpr fromEnd = SizeExpr::max(size + bound, low);
    return *value >= 0 ? SizeExpr::min(bound, high) : mayCross ? SizeExpr::min(fromEnd, high) : fromEnd;
  }
  if (bound == size)
    return high;
  if (bound.isKnownNonNegative())
    return SizeExpr::min(bound, high);
  // size - n is the usual way to count from the end in shape arithmetic.
  if ((size - bound).isKnownNonNegative())
    return SizeExpr::min(SizeExpr::select(SizeExpr::lt(bound, 0), SizeExpr::max(bound + size, low), bound), high);
  SizeExpr fromFront = SizeExpr::select(SizeExpr::lt(bound, 0), bound + size, bound);
  return SizeExpr::min(SizeExpr::max(fromFront, low), high);
}

static AxisSlice sliceOfAxis(const SizeExpr &start, const SizeExpr &end, int64_t step, const SizeExpr &size) {
  bool isForward = step > 0;
  SizeExpr first = clampBound(start, size, isForward, /*isStart=*/true),
           last = clampBound(end, size, isForward, /*isStart=*/false);
  if (!isForward && start.constant() && *start.constant() == 0 && !size.constant())
    first = 0;
  // Backwards, an end counted from the end that lies before the front stops at -1.
  SizeExpr count = isForward ? SizeExpr::ceilDiv(last - first, step) : SizeExpr::ceilDiv(first - last, -step);
  return {first, SizeExpr::max(count, 0)};
}

/// Slices of slices by bounds of run time have sizes that grow threefold with each: long ones become symbols.
static SizeExpr shortened(Node &n, const SizeExpr &size) {
  constexpr size_t lengthLimit = 512;
  return size.constant() || size.str().size() <= lengthLimit ? size : computedSize(n, n.b.shape({size}));
}

static Values sliceBy(Node &n, const SizeVector &starts, const SizeVector &ends, ArrayRef<int64_t> axes,
                      ArrayRef<int64_t> steps) {
  SizeVector sizes = n.b.sizes(n.in(0)), begin(sizes.size()), extent = sizes;
  SmallVector<int64_t> stride(sizes.size(), 1);
  if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size())
    return n.refuse("expected starts, ends, axes and steps of one length, found " + Twine(starts.size()) + ", " +
                    Twine(ends.size()) + ", " + Twine(axes.size()) + " and " + Twine(steps.size()));
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (steps[index] == 0)
      return n.refuse("expected steps other than 0, found 0");
    int64_t step = std::max(steps[index], -INT64_MAX); // leaves every axis with its first step, and can be negated
    AxisSlice slice = sliceOfAxis(starts[index], ends[index], step, sizes[axis]);
    slice.size = shortened(n, slice.size);
    begin[axis] = slice.size.isConstant(0) ? SizeExpr(0) : slice.start;
    extent[axis] = slice.size;
    // One element needs no stride, which may be as large as the model likes.
    stride[axis] = slice.size.isConstant(1) || slice.size.isConstant(0) ? 1 : step;
  }
  return {n.b.slice(n.in(0), begin, extent, stride)};
}

static Values convertSliceAttributes(Node &n) {
  auto starts = n.requiredIntegers("starts"), ends = n.requiredIntegers("ends");
  if (!starts || !ends)
    return {};
  auto axes = n.axes(n.integers("axes").value_or(axesFrom(0, starts->size())), n.b.rank(n.in(0)));
  if (!axes)
    return {};
  SmallVector<int64_t> steps(axes->size(), 1);
  return sliceBy(n, SizeVector(starts->begin(), starts->end()), SizeVector(ends->begin(), ends->end()), *axes, steps);
}

/// Axes or steps that are known only at run time: every axis is gathered by indices start, start + step, ..., with the
/// bounds and the step of the entry that means it, if one does.
static Values sliceAtRunTime(Node &n, const SizeVector &starts, const SizeVector &ends, const SizeVector &axes,
                             const SizeVector &steps) {
  Value result = n.in(0);
  SizeVector sizes = n.b.sizes(result);
  int64_t rank = n.b.rank(result);
  if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size())
    return n.refuse("expected starts, ends, axes and steps of one length, found " + Twine(starts.size()) + ", " +
                    Twine(ends.size()) + ", " + Twine(axes.size()) + " and " + Twine(steps.size()));
  for (const SizeExpr &step : steps) {
    if (step.isConstant(0))
      return n.refuse("expected steps other than 0, found 0");
    if (!step.constant())
      requireFor(n, 0, SizeExpr::eq(step, 0), "steps other than 0");
  }
  for (int64_t axis = 0; axis < rank; ++axis) {
    SizeExpr size = sizes[axis], start = 0, end = size, step = 1;
    for (size_t i = 0; i < axes.size(); ++i) {
      SizeExpr isMeant = SizeExpr::eq(axes[i], axis);
      start = SizeExpr::select(isMeant, starts[i], start);
      end = SizeExpr::select(isMeant, ends[i], end);
      step = SizeExpr::select(isMeant, steps[i], step);
    }
    if (start.isConstant(0) && end == size && step.isConstant(1))
      continue;
    SizeExpr isBackward = SizeExpr::lt(step, 0), high = size - isBackward;
    auto clamp = [&](const SizeExpr &bound, const SizeExpr &low) { // as clampBound
      SizeExpr fromFront = SizeExpr::select(SizeExpr::lt(bound, 0), bound + size, bound);
      return SizeExpr::min(SizeExpr::max(fromFront, low), high);
    };
    SizeExpr first = clamp(start, 0), distance = clamp(end, SizeExpr(0) - isBackward) - first;
    SizeExpr count = shortened(n, SizeExpr::max(SizeExpr::ceilDiv(distance, step), 0));
    Value stride = n.b.reshape(n.b.shape({step}), {}), origin = n.b.reshape(n.b.shape({first}), {});
    result = n.b.gather(axis, result, n.b.add(n.b.mul(n.b.iota(0, {count}), stride), origin));
  }
  return {result};
}

/// Lists whose length only a run knows: the program spreads them over the axes.
static Values sliceByOpenLists(Node &n) {
  int64_t rank = n.b.rank(n.in(0));
  for (unsigned input = 1; input <= 4; ++input)
    if (n.has(input) && !n.requireRank(input, 1, 1))
      return {};
  SpreadList lists(n, n.in(3), n.b.sizes(n.in(1))[0], rank, /*mayRepeat=*/false);
  SmallVector<int64_t> all = axesFrom(0, rank);
  SizeVector starts = lists.elements(n.in(1), 0), ends = lists.elements(n.in(2), INT64_MAX);
  if (n.has(4))
    return sliceAtRunTime(n, starts, ends, SizeVector(all.begin(), all.end()), lists.elements(n.in(4), 1));
  return sliceBy(n, starts, ends, all, SmallVector<int64_t>(all.size(), 1));
}

static Values convertSlice(Node &n) {
  if (llvm::any_of(ArrayRef<unsigned>{1, 2, 3, 4}, [&](unsigned input) { return isOpenList(n, input); }))
    return sliceByOpenLists(n);
  auto starts = n.sizesOf(1, "starts"), ends = n.sizesOf(2, "ends");
  if (!starts || !ends)
    return {};
  SmallVector<int64_t> all = axesFrom(0, starts->size());
  auto listed = n.has(3) ? n.sizesOf(3, "axes") : std::optional(SizeVector(all.begin(), all.end()));
  auto steps = n.has(4) ? n.sizesOf(4, "steps") : std::optional(SizeVector(starts->size(), SizeExpr(1)));
  auto axes = listed ? normalizedAxes(n, *listed, n.b.rank(n.in(0))) : std::nullopt;
  if (!axes || !steps)
    return {};
  if (!areConstant(*axes) || !areConstant(*steps))
    return sliceAtRunTime(n, *starts, *ends, *axes, *steps);
  auto constants = [](const SizeVector &values) {
    return llvm::map_to_vector(values, [](const SizeExpr &value) { return *value.constant(); });
  };
  return sliceBy(n, *starts, *ends, constants(*axes), constants(*steps));
}

/// Sizes of parts that are given: together they are the whole.
static std::optional<SizeVector> requireWhole(Node &n, std::optional<SizeVector> parts, const SizeExpr &whole) {
  SizeExpr sum;
  for (const SizeExpr &part : parts.value_or(SizeVector())) {
    if (auto known = part.constant(); known && *known < 0)
      return n.refuse("expected a split into parts of at least 0 elements, found " + Twine(*known));
    sum = sum + part;
  }
  if (parts && sum != whole && (sum - whole).constant())
    return n.refuse("expected a split into parts whose sum is " + whole.brief() + ", found " + sum.brief());
  if (parts)
    n.b.requireEqual(sum, whole);
  return parts;
}

/// The sizes of the parts: given, or equal ones, of which the last may be smaller since opset 18.
static std::optional<SizeVector> splitSizes(Node &n, const SizeExpr &size) {
  if (n.has(1))
    return requireWhole(n, n.sizesOf(1, "split"), size);
  if (auto listed = n.integers("split"))
    return requireWhole(n, SizeVector(listed->begin(), listed->end()), size);
  int64_t parts = n.integer("num_outputs", n.outputCount());
  if (parts != n.outputCount())
    return n.refuse("attribute 'num_outputs': expected the number of outputs (" + Twine(n.outputCount()) + "), found " +
                    Twine(parts));
  if (auto known = size.constant(); known && n.version() < 18 && parts > 0 && *known % parts != 0)
    return n.refuse("expected an axis that is divisible into " + Twine(parts) + " equal parts, found " + Twine(*known) +
                    " elements");
  SizeExpr each = SizeExpr::ceilDiv(size, parts);
  SizeVector sizes(parts, each);
  sizes.back() = size - each * SizeExpr(parts - 1);
  if (auto last = sizes.back().constant(); last && *last < 0)
    return n.refuse("expected an axis of at least " + (each * SizeExpr(parts - 1)).str() + " elements for " +
                    Twine(parts) + " parts, found " + size.str());
  n.b.require(sizes.back(), 0); // also where no one reads that part
  return n.version() < 18 ? requireWhole(n, SizeVector(parts, each), size) : sizes;
}

static Values convertSplit(Node &n) {
  auto axis = n.axis(n.integer("axis", 0), n.b.rank(n.in(0)));
  if (!axis)
    return {};
  auto parts = splitSizes(n, n.b.sizes(n.in(0))[*axis]);
  if (!parts)
    return {};
  if (parts->size() != n.outputCount())
    return n.refuse("expected one size per output (" + Twine(n.outputCount()) + "), found " + Twine(parts->size()));
  Values results;
  SizeExpr start;
  for (const SizeExpr &size : *parts) {
    results.push_back(n.b.sliceAxis(n.in(0), *axis, start, size));
    start = start + size;
  }
  return results;
}

/// `axes` may be known only at run time; an axis that none of them means gets no padding.
static Values padBy(Node &n, const SizeVector &pads, const SizeVector &axes, Value value) {
  static constexpr std::pair<StringRef, ds::PadKind> kinds[] = {{"constant", ds::PadKind::constant},
                                                                {"edge", ds::PadKind::edge},
                                                                {"reflect", ds::PadKind::reflect},
                                                                {"wrap", ds::PadKind::wrap}};
  std::string mode = n.text("mode", "constant", {"constant", "edge", "reflect", "wrap"});
  if (n.isRefused())
    return {};
  if (pads.size() != 2 * axes.size())
    return n.refuse("expected two pads per axis (" + Twine(2 * axes.size()) + "), found " + Twine(pads.size()));
  SizeVector low(n.b.rank(n.in(0))), high = low;
  for (size_t axis = 0; axis < low.size(); ++axis)
    for (size_t i = 0; i < axes.size(); ++i) {
      SizeExpr isMeant = SizeExpr::eq(axes[i], static_cast<int64_t>(axis));
      low[axis] = SizeExpr::select(isMeant, pads[i], low[axis]);
      high[axis] = SizeExpr::select(isMeant, pads[axes.size() + i], high[axis]);
    }
  auto kind = llvm::find_if(kinds, [&](const auto &entry) { return entry.first == mode; })->second;
  return {n.b.pad(kind, n.in(0), value, low, high)};
}

static Values convertPadAttributes(Node &n) {
  auto pads = n.version() < 2 ? n.requiredIntegers("paddings") : n.requiredIntegers("pads");
  if (!pads)
    return {};
  Value value = n.b.scalar(n.b.element(n.in(0)), n.real("value", 0));
  SmallVector<int64_t> all = axesFrom(0, n.b.rank(n.in(0)));
  return padBy(n, SizeVector(pads->begin(), pads->end()), SizeVector(all.begin(), all.end()), value);
}

static Values convertPad(Node &n) {
  auto pads = n.sizesOf(1, "pads");
  SmallVector<int64_t> all = axesFrom(0, n.b.rank(n.in(0)));
  auto listed = n.has(3) ? n.sizesOf(3, "axes") : std::optional(SizeVector(all.begin(), all.end()));
  auto axes = listed ? normalizedAxes(n, *listed, n.b.rank(n.in(0))) : std::nullopt;
  if (!pads || !axes)
    return {};
  Value value = n.has(2) ? n.b.reshape(n.in(2), {}) : n.b.scalar(n.b.element(n.in(0)), 0);
  return padBy(n, *pads, *axes, value);
}

/// Each axis cropped or padded to a size, as evenly at both ends as can be.
static Values convertCenterCropPad(Node &n) {
  Value x = n.in(0);
  auto shape = n.sizesOf(1, "shape");
  auto axes = n.axes(n.integers("axes").value_or(axesFrom(0, n.b.rank(x))), n.b.rank(x));
  if (!shape || !axes)
    return {};
  if (shape->size() != axes->size())
    return n.refuse("input 1 ('shape'): expected " + Twine(axes->size()) + " elements, found " + Twine(shape->size()));
  SizeVector sizes = n.b.sizes(x), starts(sizes.size()), kept = sizes, low = starts, high = starts;
  for (auto [axis, size] : llvm::zip_equal(*axes, *shape)) {
    SizeExpr surplus = SizeExpr::max(sizes[axis] - size, 0), missing = SizeExpr::max(size - sizes[axis], 0);
    starts[axis] = SizeExpr::floorDiv(surplus, 2);
    kept[axis] = SizeExpr::min(sizes[axis], size);
    low[axis] = SizeExpr::floorDiv(missing, 2);
    high[axis] = missing - low[axis];
  }
  Value cropped = n.b.slice(x, starts, kept, SmallVector<int64_t>(sizes.size(), 1));
  return {n.b.pad(ds::PadKind::constant, cropped, n.b.scalar(n.b.element(x), 0), low, high)};
}

void addSlicing(PatternRegistry &registry) {
  registry.add("Slice", 1, 1, convertSliceAttributes);
  registry.add("Slice", 10, 3, convertSlice);
  registry.add("Split", 1, 1, convertSplit);
  registry.add("Pad", 1, 1, convertPadAttributes);
  registry.add("Pad", 11, 2, convertPad);
  registry.add("CenterCropPad", 18, 2, convertCenterCropPad);
}

} // namespace deepstride::onnx
