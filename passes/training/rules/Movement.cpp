// Derivatives of ops that move elements: the elements of the gradient go back to where those of the operand came from,
// and meet zeros where nothing came from.
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "passes/training/Derivative.h"

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;

static void differentiateReshape(ds::ReshapeOp, Derivative &d) {
  d.give(0, d.b.reshape(d.gradient(), d.b.sizes(d.in())));
}

static void differentiateBroadcast(ds::BroadcastOp, Derivative &d) { d.give(0, d.gradient()); }

static void differentiateTranspose(ds::TransposeOp op, Derivative &d) {
  d.give(0, d.b.transpose(d.gradient(), invertPermutationVector(op.getPermutation())));
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

static void differentiateSlice(ds::SliceOp op, Derivative &d) {
  auto starts = sizesFromAttribute(op.getStarts());
  if (!starts)
    return d.refuse("with starts that are no size expressions");
  SizeVector whole = d.b.sizes(d.in());
  Value g = d.gradient();
  for (auto [axis, step] : llvm::enumerate(op.getSteps())) {
    bool isWhole = (*starts)[axis].isConstant(0) && step == 1 && d.b.sizes(g)[axis] == whole[axis];
    if (g && !isWhole)
      g = d.spread(g, static_cast<int64_t>(axis), (*starts)[axis], step, whole[axis]);
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

/// The positions that the elements of a padded axis were copied from.
static Value paddedFrom(ds::PadKind kind, const SizeExpr &low, const SizeExpr &padded, const SizeExpr &size,
                        Derivative &d) {
  DsBuilder &b = d.b;
  auto binary = [&](BinaryKind how, Value x, const SizeExpr &y) {
    return b.binary(how, x, b.reshape(b.shape({y}), {}));
  };
  Value at = binary(BinaryKind::sub, b.iota(0, {padded}), low);
  SizeExpr last = size - SizeExpr(1);
  if (kind == ds::PadKind::edge)
    return binary(BinaryKind::min, b.binary(BinaryKind::max, at, 0.0), last);
  if (kind == ds::PadKind::wrap)
    return binary(BinaryKind::mod, at, SizeExpr::max(size, 1));
  SizeExpr period = SizeExpr::max(last * SizeExpr(2), 1); // there and back
  Value folded = binary(BinaryKind::mod, at, period);
  return b.binary(BinaryKind::min, folded, b.binary(BinaryKind::sub, b.reshape(b.shape({period}), {}), folded));
}

static void differentiateCopies(ds::PadOp op, ArrayRef<SizeExpr> low, ArrayRef<SizeExpr> high, Derivative &d) {
  SizeVector sizes = d.b.sizes(d.in());
  Value g = d.wide(d.gradient());
  for (auto [axis, size] : llvm::enumerate(sizes))
    if (!low[axis].isConstant(0) || !high[axis].isConstant(0))
      g = d.scatter(g, static_cast<int64_t>(axis),
                    paddedFrom(op.getKind(), low[axis], size + low[axis] + high[axis], size, d), size);
  d.give(0, g);
}

static void differentiatePad(ds::PadOp op, Derivative &d) {
  auto low = sizesFromAttribute(op.getLow()), high = sizesFromAttribute(op.getHigh());
  if (!low || !high)
    return d.refuse("with amounts that are no size expressions");
  if (op.getKind() != ds::PadKind::constant)
    return differentiateCopies(op, *low, *high, d);
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
