// Operators whose results have as many elements as the data says: Unique and NonMaxSuppression; and Det, which chooses
// pivots.
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

static Value scatter(DsBuilder &b, ds::ScatterKind kind, const SizeExpr &size, Value places, Value values) {
  Value empty = b.broadcast(b.scalar(b.i64(), 0), {size});
  return b.create<ds::ScatterElementsOp>({empty, places, values}, kind, 0, empty, places, values);
}

/// The positions of the true elements of a vector.
static Value placesOf(Node &n, Value flags) {
  Value places = nonZero(n, flags);
  return n.b.reshape(places, {n.b.sizes(places).empty() ? SizeExpr(0) : n.b.sizes(places)[1]});
}

static Values convertUnique(Node &n) {
  DsBuilder &b = n.b;
  Value x = n.in(0), rows;
  SizeVector sizes = b.sizes(x), rest;
  SmallVector<int64_t> order = axesFrom(0, b.rank(x));
  std::optional<int64_t> axis;
  if (b.element(x).isInteger(1)) // sorted as numbers
    x = b.cast(x, IntegerType::get(b.getContext(), 8, IntegerType::Unsigned));
  if (n.attribute("axis")) {
    axis = n.axis(n.integer("axis", 0), b.rank(x));
    if (!axis)
      return {};
    std::rotate(order.begin(), order.begin() + *axis, order.begin() + *axis + 1); // the others keep their order
    x = b.transpose(x, order);
    if (!x)
      return {};
    rest = b.sizes(x);
    rows = b.reshape(x, {rest[0], product(ArrayRef(rest).drop_front())});
  } else {
    rows = b.reshape(x, {product(sizes)});
  }
  if (!rows)
    return {};
  SizeExpr count = b.sizes(rows)[0];
  Value from = b.create<ds::ArgsortOp>({rows}, rows), sorted = b.gather(0, rows, from);
  // Runs of equal ones: where they start, and which run each belongs to.
  Value place = b.iota(0, {count}), before = b.binary(BinaryKind::max, b.sub(place, 1.0), 0.0);
  Value differs = b.binary(BinaryKind::ne, sorted, b.gather(0, sorted, before));
  if (axis)
    differs = b.reduce(ReduceKind::max, differs, {1}, false);
  Value starts = b.binary(BinaryKind::bit_or, b.binary(BinaryKind::eq, place, 0.0), differs);
  Value flags = b.cast(starts, b.i64());
  Value run = b.sub(b.create<ds::CumulativeOp>({flags}, ReduceKind::sum, flags, 0, false, false), 1.0);
  Value firsts = placesOf(n, starts);
  if (!run || !firsts)
    return {};
  SizeExpr runs = b.sizes(firsts)[0];
  Value y = b.gather(0, sorted, firsts), indices = b.gather(0, from, firsts);
  Value inverse = scatter(b, ds::ScatterKind::assign, count, from, run);
  Value counts = scatter(b, ds::ScatterKind::add, runs, run, b.broadcast(b.scalar(b.i64(), 1), {count}));
  if (!n.flag("sorted", true)) { // in the order of the first ones
    Value order = b.create<ds::ArgsortOp>({indices}, indices);
    indices = b.gather(0, indices, order);
    y = b.gather(0, y, order);
    counts = b.gather(0, counts, order);
    inverse = b.gather(0, scatter(b, ds::ScatterKind::assign, runs, order, b.iota(0, {runs})), inverse);
  }
  if (axis) {
    rest[0] = runs;
    y = b.transpose(b.reshape(y, rest), invertPermutationVector(order));
  }
  return {b.cast(y, b.element(n.in(0))), indices, inverse, counts};
}

/// Boxes [..., 4] as lower and upper ends along two axes.
static void readBoxes(Node &n, Value boxes, SmallVectorImpl<Value> &low, SmallVectorImpl<Value> &high) {
  DsBuilder &b = n.b;
  int64_t last = b.rank(boxes) - 1;
  auto part = [&](int64_t i) { return b.dropAxis(b.sliceAxis(boxes, last, i, 1), last); };
  for (int64_t axis = 0; axis < 2; ++axis) {
    Value first = part(axis), second = part(axis + 2);
    if (n.flag("center_point_box", false)) {
      Value half = b.div(second, 2.0);
      low.push_back(b.sub(first, half));
      high.push_back(b.add(first, half));
    } else { // any two opposite corners
      low.push_back(b.binary(BinaryKind::min, first, second));
      high.push_back(b.binary(BinaryKind::max, first, second));
    }
  }
}

static Values convertNonMaxSuppression(Node &n) {
  DsBuilder &b = n.b;
  if (!n.requireRank(0, 3, 3) || !n.requireRank(1, 3, 3) || !n.requireFloat(0) || !n.requireFloat(1))
    return {};
  SizeVector sizes = b.sizes(n.in(1));
  SizeExpr count = sizes[2];
  if (!b.sizes(n.in(0))[2].isConstant(4))
    return n.refuse("input 0 ('boxes'): expected [batches, boxes, 4], found " + describe(b.facts(n.in(0))));
  auto scalar = [&](unsigned input, Type type) {
    return n.has(input) ? b.cast(b.reshape(n.in(input), {}), type) : b.scalar(type, 0);
  };
  Values ranked = b.topK(n.in(1), 2, count, /*largest=*/true);
  if (ranked.empty())
    return {};
  Value tuples = b.insertAxis(ranked[1], 3);
  Value boxes = b.create<ds::GatherNdOp>({n.in(0), tuples}, 1, n.in(0), tuples); // [batches, classes, boxes, 4]
  SmallVector<Value> low, high;
  readBoxes(n, boxes, low, high);
  Value zero = b.scalar(b.element(boxes), 0), shared, area;
  for (int64_t axis = 0; axis < 2; ++axis) {
    auto pairs = [&](BinaryKind kind, Value ends) {
      return b.binary(kind, b.insertAxis(ends, 3), b.insertAxis(ends, 2));
    };
    Value overlap = b.sub(pairs(BinaryKind::min, high[axis]), pairs(BinaryKind::max, low[axis]));
    overlap = b.binary(BinaryKind::max, overlap, zero);
    Value extent = b.sub(high[axis], low[axis]);
    shared = shared ? b.mul(shared, overlap) : overlap;
    area = area ? b.mul(area, extent) : extent;
  }
  Value both = b.sub(b.add(b.insertAxis(area, 3), b.insertAxis(area, 2)), shared);
  // shared / both > threshold, without a division by the areas of empty boxes.
  Value bound = b.mul(both, scalar(3, b.element(boxes)));
  Value excludes =
      b.binary(BinaryKind::bit_and, b.binary(BinaryKind::gt, shared, bound), b.binary(BinaryKind::gt, shared, zero));
  Value candidates = n.has(4) ? b.binary(BinaryKind::gt, ranked[0], scalar(4, b.element(ranked[0])))
                              : b.broadcast(b.scalar(b.i1(), 1), sizes);
  Value kept = b.create<ds::SuppressOp>({candidates, excludes}, candidates, excludes), flags = b.cast(kept, b.i64());
  Value number = b.create<ds::CumulativeOp>({flags}, ReduceKind::sum, flags, 2, false, false);
  Value chosen = b.binary(BinaryKind::bit_and, kept, b.binary(BinaryKind::le, number, scalar(2, b.i64())));
  Value places = nonZero(n, chosen);
  Value rows = b.transpose(places, {1, 0}); // batch, class, rank
  Value box = b.create<ds::GatherNdOp>({ranked[1], rows}, 0, ranked[1], rows);
  if (!box)
    return {};
  return {b.concat(1, {b.sliceAxis(rows, 1, 0, 2), b.insertAxis(box, 1)})};
}

/// By elimination with partial pivoting, one step per column.
static Values convertDet(Node &n) {
  DsBuilder &b = n.b;
  if (!n.requireRank(0, 2) || !n.requireFloat(0))
    return {};
  SizeVector sizes = b.sizes(n.in(0)), batch(sizes.begin(), sizes.end() - 2);
  auto order = sizes.back().constant();
  constexpr int64_t orderLimit = 64; // each column is a step of the program
  if (!order || sizes[sizes.size() - 2] != SizeExpr(*order) || *order > orderLimit)
    return n.refuse("expected static square matrices of at most 64 rows, found " + describe(b.facts(n.in(0))));
  Type type = b.element(n.in(0));
  Value matrix = b.reshape(n.in(0), {product(batch), *order, *order});
  Value one = b.scalar(type, 1), result = b.broadcast(one, {product(batch)});
  for (int64_t left = *order; left > 0 && matrix; --left) {
    Value column = b.unary(UnaryKind::abs, b.dropAxis(b.sliceAxis(matrix, 2, 0, 1), 2));
    Value which = b.argReduce(ReduceKind::max, column, 1, /*keep=*/true, /*last=*/false); // [batch, 1]
    Value row = b.create<ds::GatherNdOp>({matrix, which}, 1, matrix, which);              // [batch, left]
    Value pivot = b.sliceAxis(row, 1, 0, 1);
    Value isMoved = b.binary(BinaryKind::ne, which, 0.0);
    result = b.mul(result, b.dropAxis(b.select(isMoved, b.unary(UnaryKind::neg, pivot), pivot), 1));
    if (left == 1)
      break;
    // The first row takes the place of the pivot's, and both are done with the first column.
    Value isPivot = b.binary(BinaryKind::eq, b.iota(1, {1, left, 1}), b.insertAxis(which, 2));
    Value swapped = b.select(isPivot, b.sliceAxis(matrix, 1, 0, 1), matrix);
    Value below = b.sliceAxis(swapped, 1, 1, left - 1);
    Value isSingular = b.binary(BinaryKind::eq, pivot, 0.0);
    Value share = b.div(b.sliceAxis(below, 2, 0, 1), b.insertAxis(b.select(isSingular, one, pivot), 2));
    Value rest = b.insertAxis(b.sliceAxis(row, 1, 1, left - 1), 1);
    matrix = b.sub(b.sliceAxis(below, 2, 1, left - 1), b.mul(share, rest));
  }
  return {b.reshape(result, batch)};
}

void addSelection(PatternRegistry &registry) {
  registry.add("Unique", 11, 1, convertUnique);
  registry.add("NonMaxSuppression", 10, 2, convertNonMaxSuppression);
  registry.add("Det", 11, 1, convertDet);
}

} // namespace deepstride::onnx
