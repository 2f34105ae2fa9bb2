// Derivatives of convolution and pooling. Element o of an axis of the result saw, through tap t of its window, the
// element o stride + t dilation - pad of the operand.
#include "passes/training/Derivative.h"

#include <limits>

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::PadKind;
using ds::UnaryKind;

static Value convolve(Value x, Value weight, ArrayRef<int64_t> strides, ArrayRef<int64_t> pads,
                      ArrayRef<int64_t> dilations, int64_t groups, DsBuilder &b) {
  return b.create<ds::ConvOp>({x, weight}, x, weight, Value(), strides, pads, dilations, groups);
}

/// Exchanges the first two axes of a tensor, but for the groups in one of them: [g M, C, ...] becomes [g C, M, ...] and
/// [N, g C, ...] becomes [C, g N, ...].
static Value exchangeAxes(Value x, int64_t groups, bool isGroupFirst, DsBuilder &b) {
  SizeVector sizes = b.sizes(x);
  if (!x)
    return {};
  SizeVector split, joined = sizes;
  SizeExpr count = groups;
  SmallVector<int64_t> order;
  if (isGroupFirst) {
    SizeExpr own = SizeExpr::floorDiv(sizes[0], count);
    split = {count, own, sizes[1]};
    joined[0] = count * sizes[1];
    joined[1] = own;
    order = {0, 2, 1};
  } else {
    SizeExpr own = SizeExpr::floorDiv(sizes[1], count);
    split = {sizes[0], count, own};
    joined[0] = own;
    joined[1] = count * sizes[0];
    order = {2, 1, 0};
  }
  split.insert(split.end(), sizes.begin() + 2, sizes.end());
  llvm::append_range(order, axesFrom(3, static_cast<int64_t>(split.size())));
  return b.reshape(b.transpose(b.reshape(x, split), order), joined);
}

/// With respect to the operand: the gradient, its elements a stride apart, under the windows turned around.
static Value operandGradient(ds::ConvOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.gradient(), weight = exchangeAxes(d.in(1), op.getGroups(), /*isGroupFirst=*/true, b);
  SizeVector sizes = b.sizes(d.in(0)), taps = b.sizes(d.in(1));
  size_t spatial = sizes.size() - 2;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t axis = static_cast<int64_t>(i) + 2;
    SizeExpr reach = (taps[axis] - SizeExpr(1)) * SizeExpr(op.getDilations()[i]);
    weight = b.sliceAxis(weight, axis, taps[axis] - SizeExpr(1), taps[axis], -1);
    g = d.spread(g, axis, reach - SizeExpr(op.getPads()[i]), op.getStrides()[i], sizes[axis] + reach);
  }
  SmallVector<int64_t> ones(spatial, 1), none(2 * spatial, 0);
  return convolve(g, weight, ones, none, op.getDilations(), op.getGroups(), b);
}

/// With respect to the weight: the operand under the gradient as window, batch and channels exchanged.
static Value weightGradient(ds::ConvOp op, Derivative &d) {
  DsBuilder &b = d.b;
  SizeVector taps = b.sizes(d.in(1));
  Value x = exchangeAxes(d.in(0), op.getGroups(), /*isGroupFirst=*/false, b);
  SmallVector<int64_t> exchanged = axesFrom(0, b.rank(x));
  std::swap(exchanged[0], exchanged[1]);
  Value window = b.transpose(d.gradient(), exchanged);
  // Elements that no window reached make more taps than there are.
  Value all = convolve(x, window, op.getDilations(), op.getPads(), op.getStrides(), op.getGroups(), b);
  for (int64_t axis = 2; axis < static_cast<int64_t>(taps.size()); ++axis)
    all = b.sliceAxis(all, axis, 0, taps[axis]);
  return b.transpose(all, exchanged);
}

static void differentiateConv(ds::ConvOp op, Derivative &d) {
  if (d.wants(0))
    d.give(0, operandGradient(op, d));
  if (d.wants(1))
    d.give(1, weightGradient(op, d));
  if (op.getBias() && d.wants(2)) {
    SmallVector<int64_t> axes = axesFrom(1, d.b.rank(d.out()));
    axes[0] = 0;
    d.give(2, d.b.reduce(ds::ReduceKind::sum, d.wide(d.gradient()), axes, /*keep=*/false));
  }
}

namespace {
/// The windows of a pooling, tap by tap: each tap is a strided box of the padded operand.
class Taps {
public:
  Taps(ds::PoolOp op, Derivative &d) : op(op), d(d), sizes(d.b.sizes(d.in())), results(d.b.sizes(d.out())) {
    count = 1;
    for (int64_t size : op.getKernel())
      count *= size;
    low.assign(sizes.size(), SizeExpr(0));
    high = low;
    padded = sizes;
    for (size_t i = 0; i < op.getKernel().size(); ++i) {
      low[i + 2] = op.getPads()[i];
      padded[i + 2] = (results[i + 2] - SizeExpr(1)) * SizeExpr(op.getStrides()[i]) +
                      SizeExpr((op.getKernel()[i] - 1) * op.getDilations()[i] + 1);
      high[i + 2] = padded[i + 2] - sizes[i + 2] - low[i + 2];
    }
  }

  /// Everything that windows see of x; `fill` stands for what is outside.
  Value pad(Value x, double fill) { return d.b.pad(PadKind::constant, x, d.b.scalar(d.b.element(x), fill), low, high); }

  /// Ones for what an average counts: the operand, with `include_pad` also its padding, but never what a last window
  /// sees beyond that.
  Value averaged(Value ones) {
    if (!op.getIncludePad())
      return pad(ones, 0);
    SizeVector front(sizes.size(), SizeExpr(0)), back = front, none = front;
    size_t spatial = op.getKernel().size();
    for (size_t i = 0; i < spatial; ++i) {
      front[i + 2] = op.getPads()[i];
      back[i + 2] = op.getPads()[spatial + i];
    }
    DsBuilder &b = d.b;
    Value frame = b.pad(PadKind::constant, ones, b.scalar(b.element(ones), 1), front, back);
    SizeVector beyond = padded, framed = b.sizes(frame);
    for (auto [size, own] : llvm::zip_equal(beyond, framed))
      size = size - own;
    return b.pad(PadKind::constant, frame, b.scalar(b.element(ones), 0), none, beyond);
  }

  /// What one tap of all windows sees of a padded value.
  Value see(Value all, int64_t tap) {
    SizeVector starts = startsOf(tap);
    SmallVector<int64_t> steps(sizes.size(), 1);
    llvm::copy(op.getStrides(), steps.begin() + 2);
    return d.b.slice(all, starts, results, steps);
  }
  /// The opposite: where the operand's elements lie that one tap of all windows sees.
  Value putBack(Value seen, int64_t tap) {
    SizeVector starts = startsOf(tap);
    for (size_t i = 0; i < op.getKernel().size(); ++i)
      seen = d.spread(seen, static_cast<int64_t>(i) + 2, starts[i + 2], op.getStrides()[i], padded[i + 2]);
    SizeVector before = low, behind = high;
    for (SizeVector *amounts : {&before, &behind})
      for (SizeExpr &amount : *amounts)
        amount = SizeExpr(0) - amount;
    return d.b.pad(PadKind::constant, seen, d.b.scalar(d.b.element(seen), 0), before, behind);
  }

  int64_t count;

private:
  SizeVector startsOf(int64_t tap) {
    SizeVector starts(sizes.size(), SizeExpr(0));
    for (size_t i = op.getKernel().size(); i-- > 0; tap /= op.getKernel()[i])
      starts[i + 2] = tap % op.getKernel()[i] * op.getDilations()[i];
    return starts;
  }

  ds::PoolOp op;
  Derivative &d;
  SizeVector sizes, results, padded, low, high;
};
} // namespace

static void differentiatePool(ds::PoolOp op, Derivative &d) {
  constexpr int64_t tapLimit = 256;
  DsBuilder &b = d.b;
  Taps taps(op, d);
  if (taps.count > tapLimit)
    return d.refuse("yet for windows of more than " + Twine(tapLimit) + " elements");
  Value x = d.wide(d.in()), y = d.wide(d.out()), g = d.wide(d.gradient()), zero = b.scalar(b.element(x), 0);
  auto add = [&](Value sum, Value next) { return sum ? b.add(sum, next) : next; };
  std::function<Value(int64_t)> share; // of a tap in the gradient of the window
  Value all = taps.pad(x, op.getKind() == ds::PoolKind::max ? -std::numeric_limits<double>::infinity() : 0);
  auto isGreatest = [&](int64_t tap) { return b.cast(b.binary(BinaryKind::eq, taps.see(all, tap), y), b.element(x)); };
  switch (op.getKind()) {
  case ds::PoolKind::max: {
    Value count;
    for (int64_t tap = 0; tap < taps.count; ++tap)
      count = add(count, isGreatest(tap));
    Value each = b.div(g, count);
    share = [&, each](int64_t tap) { return b.mul(each, isGreatest(tap)); };
    break;
  }
  case ds::PoolKind::average: {
    Value inside = taps.averaged(b.broadcast(b.scalar(b.element(x), 1), b.sizes(x))), count;
    for (int64_t tap = 0; tap < taps.count; ++tap)
      count = add(count, taps.see(inside, tap));
    share = [each = b.div(g, count)](int64_t) { return each; };
    break;
  }
  case ds::PoolKind::lp: { // as of an l2 norm: at the origin, a corner, 0
    double power = static_cast<double>(op.getExponent()) - 1;
    Value each = b.div(g, b.binary(BinaryKind::pow, y, power));
    each = b.select(b.binary(BinaryKind::eq, y, 0.0), zero, each);
    share = [&, power, each](int64_t tap) {
      Value seen = taps.see(all, tap), size = b.binary(BinaryKind::pow, b.unary(UnaryKind::abs, seen), power);
      return b.mul(each, b.mul(b.unary(UnaryKind::sign, seen), size));
    };
    break;
  }
  }
  Value total;
  for (int64_t tap = 0; tap < taps.count; ++tap)
    total = add(total, taps.putBack(share(tap), tap));
  d.give(0, total);
}

void addWindowRules(RuleTable &table) {
  table.add(differentiateConv);
  table.add(differentiatePool);
}

} // namespace deepstride
