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

/// The lower and upper ends of boxes [batches, boxes, 4], as [batches, 2, boxes].
static std::pair<Value, Value> endsOf(Node &n, Value boxes) {
  DsBuilder &b = n.b;
  Value columns = b.transpose(boxes, {0, 2, 1}), first = b.sliceAxis(columns, 1, 0, 2),
        second = b.sliceAxis(columns, 1, 2, 2);
  if (n.flag("center_point_box", false)) {
    Value half = b.div(second, 2.0);
    return {b.sub(first, half), b.add(first, half)};
  }
  return {b.binary(BinaryKind::min, first, second),
          b.binary(BinaryKind::max, first, second)}; // any two opposite corners
}

static Values convertNonMaxSuppression(Node &n) {
  DsBuilder &b = n.b;
  if (!n.requireRank(0, 3, 3) || !n.requireRank(1, 3, 3) || !n.requireFloat(0) || !n.requireFloat(1))
    return {};
  if (!b.sizes(n.in(0))[2].isConstant(4))
    return n.refuse("input 0 ('boxes'): expected [batches, boxes, 4], found " + describe(b.facts(n.in(0))));
  Type type = b.element(n.in(1));
  auto scalar = [&](unsigned input, Type type) {
    return n.has(input) ? b.cast(b.reshape(n.in(input), {}), type) : b.scalar(type, 0);
  };
  auto [low, high] = endsOf(n, b.cast(n.in(0), type));
  Value most = scalar(2, b.i64()), overlap = scalar(3, type), least = n.has(4) ? scalar(4, type) : Value();
  SmallVector<Value> operands = {n.in(1), low, high, most, overlap};
  if (least)
    operands.push_back(least);
  Value chosen = b.create<ds::SuppressOp>(operands, n.in(1), low, high, most, overlap, least);
  Value places = nonZero(n, b.binary(BinaryKind::ge, chosen, 0.0));
  Value rows = b.transpose(places, {1, 0}); // batch, class, rank
  Value box = b.create<ds::GatherNdOp>({chosen, rows}, 0, chosen, rows);
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
