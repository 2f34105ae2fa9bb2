// Derivatives of reductions and running sums: every element gets its share of the gradient of what it went into.
#include "passes/training/Derivative.h"

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

static Value cumulative(Value x, ReduceKind kind, int64_t axis, bool exclusive, bool reverse, DsBuilder &b) {
  return b.create<ds::CumulativeOp>({x}, kind, x, axis, exclusive, reverse);
}

/// The product of all elements but the one in question. No quotient by that one, which may be 0: the product of those
/// before times that of those behind it.
static Value productOfOthers(Value x, ArrayRef<int64_t> axes, DsBuilder &b) {
  SmallVector<int64_t> order, inverse(b.rank(x));
  for (int64_t axis = 0; axis < b.rank(x); ++axis)
    if (!llvm::is_contained(axes, axis))
      order.push_back(axis);
  int64_t kept = static_cast<int64_t>(order.size());
  llvm::append_range(order, axes);
  for (auto [index, axis] : llvm::enumerate(order))
    inverse[axis] = static_cast<int64_t>(index);
  Value sorted = b.transpose(x, order);
  SizeVector sizes = b.sizes(sorted), rows(sizes.begin(), sizes.begin() + kept);
  rows.push_back(product(ArrayRef(sizes).drop_front(kept)));
  Value flat = b.reshape(sorted, rows);
  Value others = b.mul(cumulative(flat, ReduceKind::prod, kept, /*exclusive=*/true, /*reverse=*/false, b),
                       cumulative(flat, ReduceKind::prod, kept, /*exclusive=*/true, /*reverse=*/true, b));
  return b.transpose(b.reshape(others, sizes), inverse);
}

static void differentiateReduce(ds::ReduceOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value x = d.wide(d.in());
  ArrayRef<int64_t> axes = op.getAxes();
  SizeVector sizes = b.sizes(x), kept = sizes;
  SizeExpr count = 1;
  for (int64_t axis : axes) {
    count = count * sizes[axis];
    kept[axis] = 1;
  }
  Value g = b.reshape(d.wide(d.gradient()), kept), y = b.reshape(d.wide(d.out()), kept),
        zero = b.scalar(b.element(x), 0);
  switch (op.getKind()) {
  case ReduceKind::sum: return d.give(0, b.broadcast(g, sizes));
  case ReduceKind::mean: return d.give(0, b.broadcast(b.div(g, d.number(b.element(g), count)), sizes));
  case ReduceKind::max:
  case ReduceKind::min: { // equal shares for all that are the greatest
    Value chosen = b.cast(b.binary(BinaryKind::eq, x, y), b.element(x));
    return d.give(0, b.mul(chosen, b.div(g, d.sum(chosen, axes))));
  }
  case ReduceKind::prod: return d.give(0, b.mul(g, productOfOthers(x, axes, b)));
  case ReduceKind::l1: return d.give(0, b.mul(g, b.unary(UnaryKind::sign, x)));
  case ReduceKind::l2: // at the origin, a corner, 0
    return d.give(0, b.select(b.binary(BinaryKind::eq, y, 0.0), zero, b.mul(x, b.div(g, y))));
  case ReduceKind::log_sum: return d.give(0, b.broadcast(b.div(g, d.sum(x, axes)), sizes));
  case ReduceKind::log_sum_exp: return d.give(0, b.mul(g, b.unary(UnaryKind::exp, b.sub(x, y))));
  case ReduceKind::sum_square: return d.give(0, b.mul(b.mul(x, 2.0), g));
  }
  llvm_unreachable("all reductions handled");
}

/// Every result of a running product is the product of a row of its own, with ones for what is not yet in it.
static void differentiateRunningProduct(ds::CumulativeOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value x = d.wide(d.in()), g = d.wide(d.gradient());
  int64_t axis = op.getAxis(); // of results; the axis behind it is that of operands
  SizeExpr size = b.sizes(x)[axis];
  BinaryKind isIn = op.getReverse() ? (op.getExclusive() ? BinaryKind::gt : BinaryKind::ge)
                                    : (op.getExclusive() ? BinaryKind::lt : BinaryKind::le);
  SizeVector square(b.rank(x) + 1, SizeExpr(1));
  square[axis] = square[axis + 1] = size;
  Value mask = b.reshape(b.binary(isIn, b.iota(1, {size, size}), b.iota(0, {size, size})), square);
  Value rows = b.select(mask, b.insertAxis(x, axis), b.scalar(b.element(x), 1));
  Value slopes = b.mul(productOfOthers(rows, {axis + 1}, b), b.insertAxis(g, axis + 1));
  d.give(0, b.reduce(ReduceKind::sum, b.select(mask, slopes, b.scalar(b.element(x), 0)), {axis}, /*keep=*/false));
}

static void differentiateCumulative(ds::CumulativeOp op, Derivative &d) {
  if (op.getKind() == ReduceKind::prod)
    return differentiateRunningProduct(op, d);
  d.give(0, cumulative(d.wide(d.gradient()), ReduceKind::sum, op.getAxis(), op.getExclusive(), !op.getReverse(), d.b));
}

void addReductionRules(RuleTable &table) {
  table.add(differentiateReduce);
  table.add(differentiateCumulative);
}

} // namespace deepstride
