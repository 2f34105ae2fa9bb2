// Reductions over axes and what is computed along one axis.
#include "frontends/onnx/convert/Registry.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::ReduceKind;

/// The reduced axes, sorted. Without any, all of them; with `noop_with_empty_axes`, none.
static std::optional<SmallVector<int64_t>> reducedAxes(Node &n) {
  int64_t rank = n.b.rank(n.in(0));
  auto listed = n.has(1) ? n.numbersOf(1, "axes") : n.integers("axes");
  if (n.isRefused())
    return std::nullopt;
  if (!listed || listed->empty())
    return n.flag("noop_with_empty_axes", false) ? SmallVector<int64_t>() : axesFrom(0, rank);
  auto axes = n.axes(*listed, rank);
  if (axes)
    llvm::sort(*axes);
  return axes;
}

/// Integers have no logarithm, root or exact mean of their own: those are computed in f64, as the specification's
/// reference does.
static bool needsFloat(ReduceKind kind) {
  return kind == ReduceKind::mean || kind == ReduceKind::l2 || kind == ReduceKind::log_sum ||
         kind == ReduceKind::log_sum_exp;
}

static Convert reduce(ReduceKind kind) {
  return [kind](Node &n) -> Values {
    auto axes = reducedAxes(n);
    if (!axes)
      return {};
    Value x = n.in(0);
    Type type = n.b.element(x);
    bool keep = n.flag("keepdims", true);
    // Without axes and with the flag, the operator passes its operand on.
    if (axes->empty() && n.b.rank(x) > 0)
      return {x};
    if (isa<IntegerType>(type) && needsFloat(kind))
      return {n.b.cast(n.b.reduce(kind, n.b.cast(x, n.b.f64()), *axes, keep), type)};
    return {n.b.reduce(kind, x, *axes, keep)};
  };
}

static Convert argReduce(ReduceKind kind) {
  return [kind](Node &n) -> Values {
    auto axis = n.axis(n.integer("axis", 0), n.b.rank(n.in(0)));
    return {axis ? n.b.argReduce(kind, n.in(0), *axis, n.flag("keepdims", true), n.flag("select_last_index", false))
                 : Value()};
  };
}

static Values convertCumSum(Node &n) {
  auto listed = n.numberOf(1, "axis");
  auto axis = listed ? n.axis(*listed, n.b.rank(n.in(0))) : std::nullopt;
  Value x = n.in(0);
  return {axis ? n.b.create<ds::CumulativeSumOp>({x}, x, *axis, n.flag("exclusive", false), n.flag("reverse", false))
               : Value()};
}

static Value hardmax(DsBuilder &b, Value x, int64_t axis) {
  Value first = b.argReduce(ReduceKind::max, x, axis, /*keep=*/true, /*last=*/false);
  SizeVector ruler(b.rank(x), SizeExpr(1));
  ruler[axis] = b.sizes(x)[axis];
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
  auto axis = n.axis(n.integer("axis", 1), std::max<int64_t>(rank, 2)); // [n] with axis 1 is n rows of one element
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
  registry.add("CumSum", 11, 2, convertCumSum);
  for (const char *name : {"Softmax", "LogSoftmax", "Hardmax"}) {
    registry.add(name, 1, 1, convertFlatSoftmax);
    registry.add(name, 13, 1, convertSoftmax);
  }
}

} // namespace deepstride::onnx
