// Derivatives of ops that move elements: the elements of the gradient go back to where those of the operand came from,
// and meet zeros where nothing came from.
#include "passes/training/Derivative.h"

using namespace mlir;

namespace deepstride {

static void differentiateReshape(ds::ReshapeOp, Derivative &d) {
  d.give(0, d.b.reshape(d.gradient(), d.b.sizes(d.in())));
}

static void differentiateBroadcast(ds::BroadcastOp, Derivative &d) { d.give(0, d.gradient()); }

static void differentiateTranspose(ds::TransposeOp op, Derivative &d) {
  SmallVector<int64_t> inverse(op.getPermutation().size());
  for (auto [index, axis] : llvm::enumerate(op.getPermutation()))
    inverse[axis] = static_cast<int64_t>(index);
  d.give(0, d.b.transpose(d.gradient(), inverse));
}

static void differentiateConcat(ds::ConcatOp op, Derivative &d) {
  int64_t axis = op.getAxis();
  SizeExpr start;
  for (unsigned i = 0; i < op.getInputs().size(); ++i) {
    SizeExpr size = d.b.sizes(d.in(i))[axis];
    if (d.wants(i))
      d.give(i, d.b.sliceAxis(d.gradient(), axis, start, size));
    start = start + size;
  }
}

/// Puts the elements of an axis `step` apart, from `start` on, into an axis of `size` zeros.
static Value spread(Value g, int64_t axis, SizeExpr start, int64_t step, const SizeExpr &size, DsBuilder &b) {
  Value zero = b.scalar(b.element(g), 0);
  SizeExpr count = b.sizes(g)[axis];
  if (step < 0) { // backwards from `start`: turned around, it begins at the last one
    g = b.sliceAxis(g, axis, SizeExpr::max(count - SizeExpr(1), 0), count, -1);
    start = start + (count - SizeExpr(1)) * SizeExpr(step);
    step = -step;
  }
  if (step > 1) { // every element becomes a row of its own that ends in zeros
    SizeVector rows = b.sizes(g);
    rows.insert(rows.begin() + axis + 1, 1);
    SizeVector none(rows.size(), SizeExpr(0)), gap = none;
    gap[axis + 1] = step - 1;
    SizeVector flat = b.sizes(g);
    flat[axis] = count * SizeExpr(step);
    g = b.reshape(b.pad(ds::PadKind::constant, b.reshape(g, rows), zero, none, gap), flat);
  }
  SizeVector low(b.rank(g), SizeExpr(0)), high = low;
  low[axis] = start;
  high[axis] = size - start - count * SizeExpr(step);
  return b.pad(ds::PadKind::constant, g, zero, low, high);
}

static void differentiateSlice(ds::SliceOp op, Derivative &d) {
  auto starts = sizesFromAttribute(op.getStarts());
  if (!starts)
    return d.refuse("with starts that are no size expressions");
  SizeVector whole = d.b.sizes(d.in());
  Value g = d.gradient();
  for (auto [axis, step] : llvm::enumerate(op.getSteps())) {
    bool isWhole = (*starts)[axis].isConstant(0) && step == 1 && d.b.sizes(g)[axis] == whole[axis];
    if (g && !isWhole)
      g = spread(g, static_cast<int64_t>(axis), (*starts)[axis], step, whole[axis], d.b);
  }
  d.give(0, g);
}

static void differentiateInsert(ds::InsertOp op, Derivative &d) {
  auto starts = sizesFromAttribute(op.getStarts());
  if (!starts)
    return d.refuse("with starts that are no size expressions");
  Value g = d.gradient();
  SizeVector box = d.b.sizes(d.in(0));
  SmallVector<int64_t> steps(box.size(), 1);
  d.give(0, d.b.slice(g, *starts, box, steps));
  Value hole = d.zeros(d.b.element(g), box);
  d.give(1, d.b.create<ds::InsertOp>({hole, g}, hole, g, op.getStarts()));
}

static void differentiatePad(ds::PadOp op, Derivative &d) {
  if (op.getKind() != ds::PadKind::constant)
    return d.refuse("yet for other padding than with a constant");
  auto low = sizesFromAttribute(op.getLow()), high = sizesFromAttribute(op.getHigh());
  if (!low || !high)
    return d.refuse("with amounts that are no size expressions");
  DsBuilder &b = d.b;
  Value g = d.gradient();
  for (SizeVector *amounts : {&*low, &*high})
    for (SizeExpr &amount : *amounts)
      amount = SizeExpr(0) - amount;
  Value inner = b.pad(ds::PadKind::constant, g, b.scalar(b.element(g), 0), *low, *high);
  d.give(0, inner);
  if (d.wants(1)) {
    auto total = [&](Value value) { return b.reduce(ds::ReduceKind::sum, value, axesFrom(0, b.rank(value)), false); };
    d.give(1, b.reshape(b.sub(total(d.wide(g)), total(d.wide(inner))), b.sizes(d.in(1))));
  }
}

void addMovementRules(RuleTable &table) {
  table.add(differentiateReshape);
  table.add(differentiateBroadcast);
  table.add(differentiateTranspose);
  table.add(differentiateConcat);
  table.add(differentiateSlice);
  table.add(differentiateInsert);
  table.add(differentiatePad);
}

} // namespace deepstride
