// Derivatives of ops that choose elements by index: what was gathered is scattered, several times the same element adds
// up.
#include "passes/training/Derivative.h"

using namespace mlir;

namespace deepstride {
using ds::ScatterKind;

static Value scatterElements(ScatterKind kind, int64_t axis, Value into, Value indices, Value updates, DsBuilder &b) {
  return b.create<ds::ScatterElementsOp>({into, indices, updates}, kind, axis, into, indices, updates);
}

static Value scatterNd(ScatterKind kind, Value into, Value indices, Value updates, DsBuilder &b) {
  return b.create<ds::ScatterNdOp>({into, indices, updates}, kind, into, indices, updates);
}

static void differentiateGather(ds::GatherOp op, Derivative &d) {
  if (op.getScales())
    return d.refuse("once its table is quantized");
  int64_t axis = op.getAxis();
  d.give(0, d.scatter(d.wide(d.gradient()), axis, op.getIndices(), d.b.sizes(d.in())[axis]));
}

static void differentiateGatherElements(ds::GatherElementsOp op, Derivative &d) {
  Value g = d.wide(d.gradient()), into = d.zeros(d.b.element(g), d.b.sizes(d.in()));
  d.give(0, scatterElements(ScatterKind::add, op.getAxis(), into, op.getIndices(), g, d.b));
}

static void differentiateGatherNd(ds::GatherNdOp op, Derivative &d) {
  if (op.getBatchDims() != 0)
    return d.refuse("yet with batch axes");
  Value g = d.wide(d.gradient()), into = d.zeros(d.b.element(g), d.b.sizes(d.in()));
  d.give(0, scatterNd(ScatterKind::add, into, op.getIndices(), g, d.b));
}

/// Assigned elements hide those below; where an index comes twice, which of the updates is read is not defined.
static void differentiateScatterElements(ds::ScatterElementsOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.gradient(), indices = op.getIndices();
  int64_t axis = op.getAxis();
  if (op.getKind() != ScatterKind::add && op.getKind() != ScatterKind::assign)
    return d.refuse("yet for products, maxima and minima");
  bool adds = op.getKind() == ScatterKind::add;
  Value hole = d.zeros(b.element(g), b.sizes(indices));
  if (d.wants(0))
    d.give(0, adds ? g : scatterElements(ScatterKind::assign, axis, g, indices, hole, b));
  if (d.wants(2))
    d.give(2, b.create<ds::GatherElementsOp>({g, indices}, axis, g, indices));
}

static void differentiateScatterNd(ds::ScatterNdOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.gradient(), indices = op.getIndices();
  if (op.getKind() != ScatterKind::add && op.getKind() != ScatterKind::assign)
    return d.refuse("yet for products, maxima and minima");
  bool adds = op.getKind() == ScatterKind::add;
  Value hole = d.zeros(b.element(g), b.sizes(d.in(2)));
  if (d.wants(0))
    d.give(0, adds ? g : scatterNd(ScatterKind::assign, g, indices, hole, b));
  if (d.wants(2))
    d.give(2, b.create<ds::GatherNdOp>({g, indices}, int64_t(0), g, indices));
}

static void differentiateTopK(ds::TopKOp op, Derivative &d) {
  Value g = d.wide(d.gradient()), into = d.zeros(d.b.element(g), d.b.sizes(d.in()));
  d.give(0, scatterElements(ScatterKind::add, op.getAxis(), into, op.getIndices(), g, d.b));
}

void addIndexingRules(RuleTable &table) {
  table.add(differentiateGather);
  table.add(differentiateGatherElements);
  table.add(differentiateGatherNd);
  table.add(differentiateScatterElements);
  table.add(differentiateScatterNd);
  table.add(differentiateTopK);
}

} // namespace deepstride
