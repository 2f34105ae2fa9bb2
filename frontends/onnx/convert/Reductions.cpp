// Reductions over axes and what is computed along one axis.
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"
#include "frontends/onnx/convert/RunTimeLists.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::ReduceKind;

/// The reduced axes, counted from the front. Without any, all of them; with `noop_with_empty_axes`, none. What is
/// listed again is reduced already; only the rank of a result without the reduced axes must be known before the call.
static std::optional<SizeVector> reducedAxes(Node &n, bool keep) {
  int64_t rank = n.b.rank(n.in(0));
  auto listed = listedAxes(n, 1);
  if (n.isRefused())
    return std::nullopt;
  if (listed && !listed->empty()) {
    SizeVector once;
    SmallVector<int64_t> seen;
    for (const SizeExpr &axis : *listed) {
      auto known = axis.constant();
      int64_t fromFront = known ? *known + (*known < 0 ? rank : 0) : 0;
      if (known && llvm::is_contained(seen, fromFront))
        continue;
      if (known)
        seen.push_back(fromFront);
      once.push_back(axis);
    }
    return normalizedAxes(n, once, rank, /*mayRepeat=*/keep);
  }
  SmallVector<int64_t> all = axesFrom(0, n.flag("noop_with_empty_axes", false) ? 0 : rank);
  return SizeVector(all.begin(), all.end());
}

namespace {
/// Reductions one after the other, of one axis of three each.
class Steps {
public:
  /// The operand as [before, size, after], and what is left of it.
  void add(const SizeVector &split, const SizeVector &rest) {
    steps.push_back({split, rest});
    count = count * split[1];
  }

  /// Each kind is a composition of such steps. What rounds is done once, before the first or after the last of them.
  Value reduce(DsBuilder &b, ReduceKind kind, Value x) const {
    switch (kind) {
    case ReduceKind::mean: {
      Value length = b.reshape(b.shape({count}), {});
      return b.div(apply(b, ReduceKind::sum, x), b.cast(length, b.element(x)));
    }
    case ReduceKind::l1: return apply(b, ReduceKind::sum, b.unary(ds::UnaryKind::abs, x));
    case ReduceKind::l2: return b.unary(ds::UnaryKind::sqrt, apply(b, ReduceKind::sum, b.mul(x, x)));
    case ReduceKind::sum_square: return apply(b, ReduceKind::sum, b.mul(x, x));
    case ReduceKind::log_sum: return b.unary(ds::UnaryKind::log, apply(b, ReduceKind::sum, x));
    default: return apply(b, kind, x); // of log_sum_exp no step is below the greatest element
    }
  }

private:
  Value apply(DsBuilder &b, ReduceKind kind, Value x) const {
    for (const auto &[split, rest] : steps)
      x = b.reshape(b.reduce(kind, b.reshape(x, split), {1}), rest);
    return x;
  }

  SmallVector<std::pair<SizeVector, SizeVector>> steps;
  SizeExpr count = 1;
};
} // namespace

/// Axes that are known only at run time.
static Value reduceAtRunTime(DsBuilder &b, ReduceKind kind, Value x, const SizeVector &axes, bool keep) {
  SizeVector sizes = b.sizes(x), full = sizes;
  Steps steps;
  for (const SizeExpr &axis : axes) {
    SizeVector rest = withSize(sizes, axis, 1);
    steps.add(splitAround(sizes, axis), rest);
    sizes = rest;
  }
  x = steps.reduce(b, kind, x);
  return keep ? x : b.reshape(x, withoutAxes(full, axes));
}

static Value reduceAxes(DsBuilder &b, ReduceKind kind, Value x, const SizeVector &axes, bool keep) {
  if (!areConstant(axes))
    return reduceAtRunTime(b, kind, x, axes, keep);
  SmallVector<int64_t> constants;
  for (const SizeExpr &axis : axes)
    constants.push_back(*axis.constant());
  llvm::sort(constants);
  return b.reduce(kind, x, constants, keep);
}

/// The same for a list of axes whose length only a run knows: every axis is reduced, as a whole where the run lists it,
/// else by one element after the other.
static Value reduceOpenList(Node &n, ReduceKind kind, Value x) {
  DsBuilder &b = n.b;
  SizeVector sizes = b.sizes(x);
  SizeExpr length = b.sizes(n.in(1))[0];
  SizeVector flags = SpreadList(n, n.in(1), length, b.rank(x), /*mayRepeat=*/true).flags();
  Steps steps;
  for (auto [axis, flag] : llvm::enumerate(flags)) {
    // No axes are all of them, unless the node says that they are none.
    SizeExpr isReduced =
        n.flag("noop_with_empty_axes", false) ? flag : SizeExpr::select(SizeExpr::eq(length, 0), 1, flag);
    SizeExpr size = sizes[axis], kept = SizeExpr::select(isReduced, 1, size);
    SizeExpr before = product(ArrayRef(sizes).take_front(axis)), after = product(ArrayRef(sizes).drop_front(axis + 1));
    sizes[axis] = kept;
    steps.add({before, SizeExpr::select(isReduced, size, 1), kept * after}, sizes);
  }
  return steps.reduce(b, kind, x);
}

/// Integers have no logarithm, root or exact mean of their own: those are computed in f64, as the specification's
/// reference does.
static bool needsFloat(ReduceKind kind) {
  return kind == ReduceKind::mean || kind == ReduceKind::l2 || kind == ReduceKind::log_sum ||
         kind == ReduceKind::log_sum_exp;
}

/// What a reduction over no axes leaves of each element: the steps before and after the sum.
static Value reduceNothing(DsBuilder &b, ReduceKind kind, Value x) {
  if (kind == ReduceKind::log_sum)
    return b.unary(ds::UnaryKind::log, x);
  if (kind == ReduceKind::sum_square)
    return b.mul(x, x);
  if (kind == ReduceKind::l1 || kind == ReduceKind::l2) // the root of a square is exact without both
    return b.element(x).isUnsignedInteger() ? x : b.unary(ds::UnaryKind::abs, x);
  return x;
}

/// A scalar has no axes: the only legal list is the empty one.
static Value reduceScalar(Node &n, ReduceKind kind, Value x) {
  requireFor(n, 0, n.b.sizes(n.in(1))[0], "no axes of a scalar");
  return reduceNothing(n.b, kind, x);
}

static Convert reduce(ReduceKind kind) {
  return [kind](Node &n) -> Values {
    bool keep = n.flag("keepdims", true);
    Value x = n.in(0);
    Type type = n.b.element(x);
    bool isScalar = n.b.rank(x) == 0, isOpen = (keep || isScalar) && n.has(1) && isOpenList(n, 1);
    auto axes = isOpen ? SizeVector() : reducedAxes(n, keep);
    if (!axes)
      return {};
    bool isNothing = isOpen ? isScalar : axes->empty();
    bool areSteps = !isNothing && (isOpen || !areConstant(*axes)); // of which each would round
    if (isa<IntegerType>(type) && needsFloat(kind) && (!isNothing || kind == ReduceKind::log_sum))
      x = n.b.cast(x, n.b.f64());
    else if (areSteps && (type.isF16() || type.isBF16()))
      x = n.b.cast(x, n.b.f32());
    Value result = isOpen && isScalar ? reduceScalar(n, kind, x)
                   : isOpen           ? reduceOpenList(n, kind, x)
                   : isNothing        ? reduceNothing(n.b, kind, x)
                                      : reduceAxes(n.b, kind, x, *axes, keep);
    return {n.b.cast(result, type)};
  };
}

static Convert argReduce(ReduceKind kind) {
  return [kind](Node &n) -> Values {
    auto axis = n.axis(n.integer("axis", 0), n.b.rank(n.in(0)));
    return {axis ? n.b.argReduce(kind, n.in(0), *axis, n.flag("keepdims", true), n.flag("select_last_index", false))
                 : Value()};
  };
}

static Values convertCumulative(Node &n, ReduceKind kind) {
  auto listed = n.sizeOf(1, "axis");
  if (!listed)
    return {};
  Value x = n.in(0);
  SizeVector sizes = n.b.sizes(x);
  auto axes = normalizedAxes(n, {*listed}, n.b.rank(x));
  if (!axes)
    return {};
  int64_t axis = axes->front().constant().value_or(1);
  if (!areConstant(*axes))
    x = n.b.reshape(x, splitAround(sizes, axes->front()));
  Value sums = n.b.create<ds::CumulativeOp>({x}, kind, x, axis, n.flag("exclusive", false), n.flag("reverse", false));
  return {n.b.reshape(sums, sizes)};
}

static Value hardmax(DsBuilder &b, Value x, int64_t axis) {
  SizeVector sizes = b.sizes(x), ruler(sizes.size(), SizeExpr(1)), none(sizes.size()), one = none;
  ruler[axis] = sizes[axis];
  // Nothing is greatest along an axis without elements. The result has none then, but the search needs one.
  if (sizes[axis].range().low < 1) {
    one[axis] = SizeExpr::eq(sizes[axis], 0);
    x = b.pad(ds::PadKind::constant, x, b.scalar(b.element(x), 0), none, one);
  }
  Value first = b.argReduce(ReduceKind::max, x, axis, /*keep=*/true, /*last=*/false);
  return b.cast(b.binary(ds::BinaryKind::eq, b.iota(axis, ruler), first), b.element(x));
}

static Value alongAxis(DsBuilder &b, StringRef name, Value x, int64_t axis) {
  return name == "Hardmax" ? hardmax(b, x, axis) : b.softmax(x, axis, /*log=*/name == "LogSoftmax");
}

static Values convertSoftmax(Node &n) {
  auto axis = n.axis(n.integer("axis", -1), n.b.rank(n.in(0)));
  return {axis ? alongAxis(n.b, n.name(), n.in(0), *axis) : Value()};
}

/// Before opset 13 the operand is a matrix whose rows are the axes from `axis` on, together.
static Values convertFlatSoftmax(Node &n) {
  int64_t rank = n.b.rank(n.in(0));
  if (!n.requireRank(0, 1))
    return {};
  int64_t given = n.integer("axis", 1);
  auto axis = n.axis(given, given == 1 ? std::max<int64_t>(rank, 2) : rank); // [n] with axis 1 is n rows of one element
  if (!axis)
    return {};
  if (*axis == rank - 1)
    return {alongAxis(n.b, n.name(), n.in(0), *axis)};
  SizeVector sizes = n.b.sizes(n.in(0));
  ArrayRef<SizeExpr> all(sizes);
  Value matrix = n.b.reshape(n.in(0), {product(all.take_front(*axis)), product(all.drop_front(*axis))});
  return {matrix ? n.b.reshape(alongAxis(n.b, n.name(), matrix, 1), sizes) : Value()};
}

void addReductions(PatternRegistry &registry) {
  static constexpr std::pair<const char *, ReduceKind> kinds[] = {{"ReduceSum", ReduceKind::sum},
                                                                  {"ReduceMean", ReduceKind::mean},
                                                                  {"ReduceProd", ReduceKind::prod},
                                                                  {"ReduceMax", ReduceKind::max},
                                                                  {"ReduceMin", ReduceKind::min},
                                                                  {"ReduceL1", ReduceKind::l1},
                                                                  {"ReduceL2", ReduceKind::l2},
                                                                  {"ReduceLogSum", ReduceKind::log_sum},
                                                                  {"ReduceSumSquare", ReduceKind::sum_square},
                                                                  {"ReduceLogSumExp", ReduceKind::log_sum_exp}};
  for (auto [name, kind] : kinds)
    registry.add(name, 1, 1, reduce(kind));
  registry.add("ArgMax", 1, 1, argReduce(ReduceKind::max));
  registry.add("ArgMin", 1, 1, argReduce(ReduceKind::min));
  registry.add("CumSum", 11, 2, [](Node &n) { return convertCumulative(n, ReduceKind::sum); });
  registry.add("CumProd", 26, 2, [](Node &n) { return convertCumulative(n, ReduceKind::prod); });
  for (const char *name : {"Softmax", "LogSoftmax", "Hardmax"}) {
    registry.add(name, 1, 1, convertFlatSoftmax);
    registry.add(name, 13, 1, convertSoftmax);
  }
}

} // namespace deepstride::onnx
