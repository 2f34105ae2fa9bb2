// Operators that choose elements by index or by value.
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"

using namespace mlir;

namespace deepstride::onnx {

static Values convertGather(Node &n) {
  auto axis = n.axis(n.integer("axis", 0), n.b.rank(n.in(0)));
  return {axis ? n.b.gather(*axis, n.in(0), n.in(1)) : Value()};
}

static Values convertGatherElements(Node &n) {
  auto axis = n.axis(n.integer("axis", 0), n.b.rank(n.in(0)));
  Value x = n.in(0), indices = n.in(1);
  return {axis ? n.b.create<ds::GatherElementsOp>({x, indices}, *axis, x, indices) : Value()};
}

/// Tuples of indices whose length is dynamic, seen as tuples of the length that the other ranks leave no choice but.
/// `slices` is the rank of all slices together, tuple axes included; nothing where no rank is known.
static Value withTupleLength(Node &n, int64_t batchDims, std::optional<int64_t> slices) {
  Value indices = n.in(1);
  SizeVector sizes = n.b.sizes(indices);
  if (sizes.empty() || sizes.back().constant())
    return indices;
  if (!slices)
    return n.refuse("input 1 ('indices', " + describe(n.b.facts(indices)) +
                    "): the rank of the result depends on the size of the last axis, " + sizes.back().brief() +
                    "; pin it with --dim, or state the shape of the output in the model");
  int64_t length = n.b.rank(n.in(0)) + static_cast<int64_t>(sizes.size()) - 1 - *slices;
  if (length < 1 || length + batchDims > n.b.rank(n.in(0)))
    return n.refuse("input 1 ('indices', " + describe(n.b.facts(indices)) + "): expected tuples of 1 to " +
                    Twine(n.b.rank(n.in(0)) - batchDims) + " indices, found " + Twine(length) +
                    ", as the ranks of the operand and of the slices ask for");
  // The reshape compares numbers of elements: of no tuples those of any length.
  n.b.require(sizes.back(), length);
  n.b.require(length, sizes.back());
  sizes.back() = length;
  return n.b.reshape(indices, sizes);
}

static Values convertGatherNd(Node &n) {
  int64_t batchDims = n.integer("batch_dims", 0);
  auto stated = dyn_cast<RankedTensorType>(n.operation().getResult(0).getType());
  Value x = n.in(0);
  Value indices = withTupleLength(n, batchDims, stated ? std::optional(stated.getRank() + batchDims) : std::nullopt);
  return {n.b.create<ds::GatherNdOp>({x, indices}, batchDims, x, indices)};
}

static std::optional<ds::ScatterKind> scatterKind(Node &n) {
  std::string reduction = n.text("reduction", "none", {"none", "add", "mul", "max", "min"});
  if (n.isRefused())
    return std::nullopt;
  return reduction == "none" ? ds::ScatterKind::assign : *ds::symbolizeScatterKind(reduction);
}

static Values convertScatterElements(Node &n) {
  auto axis = n.axis(n.integer("axis", 0), n.b.rank(n.in(0)));
  auto kind = scatterKind(n);
  if (!axis || !kind)
    return {};
  Value x = n.in(0), indices = n.in(1), updates = n.in(2);
  return {n.b.create<ds::ScatterElementsOp>({x, indices, updates}, *kind, *axis, x, indices, updates)};
}

static Values convertScatterNd(Node &n) {
  auto kind = scatterKind(n);
  Value x = n.in(0), indices = withTupleLength(n, 0, n.b.rank(n.in(2))), updates = n.in(2);
  return {kind ? n.b.create<ds::ScatterNdOp>({x, indices, updates}, *kind, x, indices, updates) : Value()};
}

static Values convertNonZero(Node &n) {
  if (n.b.rank(n.in(0)) == 0) // a scalar has one place and no coordinates
    return n.refuse("input 0: expected at least one axis, found a scalar");
  return {nonZero(n, n.in(0))};
}

static Values convertCompress(Node &n) {
  Value x = n.in(0);
  int64_t axis = 0;
  if (n.attribute("axis")) {
    auto listed = n.axis(n.integer("axis", 0), n.b.rank(x));
    if (!listed)
      return {};
    axis = *listed;
  } else {
    x = n.b.reshape(x, {product(n.b.sizes(x))});
  }
  if (!n.requireRank(1, 1, 1))
    return {};
  Value places = nonZero(n, n.in(1));
  return {places ? n.b.gather(axis, x, n.b.dropAxis(places, 0)) : Value()};
}

static Values topK(Node &n, const SizeExpr &k) {
  auto axis = n.axis(n.integer("axis", -1), n.b.rank(n.in(0)));
  if (!axis)
    return {};
  return n.b.topK(n.in(0), *axis, k, n.flag("largest", true));
}

static Values convertTopKAttribute(Node &n) {
  auto k = n.requiredInteger("k");
  return k ? topK(n, *k) : Values();
}

static Values convertTopK(Node &n) {
  auto k = n.sizeOf(1, "K");
  return k ? topK(n, *k) : Values();
}

/// The first `sequence_lens[b]` elements along the time axis in reverse, the others as they are.
static Values convertReverseSequence(Node &n) {
  if (!n.requireRank(0, 2) || !n.requireRank(1, 1, 1))
    return {};
  Value x = n.in(0);
  int64_t rank = n.b.rank(x);
  auto time = n.axis(n.integer("time_axis", 0), rank), batch = n.axis(n.integer("batch_axis", 1), rank);
  if (!time || !batch)
    return {};
  SizeVector sizes = n.b.sizes(x), ruler(rank, SizeExpr(1));
  ruler[*time] = sizes[*time];
  Value length = vectorAlong(n, 1, n.b.cast(n.in(1), n.b.i64()), *batch, rank, {sizes[*batch], "sequence"});
  if (!length)
    return {};
  Value place = n.b.iota(*time, ruler);
  Value mirrored = n.b.sub(n.b.sub(length, 1.0), place);
  Value indices = n.b.select(n.b.binary(ds::BinaryKind::lt, place, length), mirrored, place);
  indices = n.b.broadcast(indices, sizes);
  return {n.b.create<ds::GatherElementsOp>({x, indices}, *time, x, indices)};
}

/// A cache with an update written from a place of its own per batch, around the end where the mode is circular.
static Values convertTensorScatter(Node &n) {
  Value cache = n.in(0), update = n.in(1);
  int64_t rank = n.b.rank(cache);
  auto axis = n.axis(n.integer("axis", -2), rank);
  std::string mode = n.text("mode", "linear", {"linear", "circular"});
  if (!axis || !n.requireRank(1, rank, rank))
    return {};
  SizeVector sizes = n.b.sizes(update), ruler(rank, SizeExpr(1));
  ruler[*axis] = sizes[*axis];
  Value place = n.b.iota(*axis, ruler);
  if (n.has(2)) {
    Value start = vectorAlong(n, 2, n.in(2), 0, rank, {sizes[0], "batch"});
    if (!start)
      return {};
    place = n.b.add(start, place);
  }
  if (mode == "circular")
    place = n.b.binary(ds::BinaryKind::mod, place, n.b.reshape(n.b.shape({n.b.sizes(cache)[*axis]}), {}));
  if (!place)
    return {};
  // What lies behind the axis is written as a whole: a place has the numbers of the axes up to it.
  SizeVector lead(sizes.begin(), sizes.begin() + *axis + 1), own = n.b.sizes(place);
  place = n.b.reshape(place, ArrayRef(own).take_front(lead.size()));
  SmallVector<Value> numbers;
  for (int64_t before = 0; before <= *axis; ++before)
    numbers.push_back(
        n.b.insertAxis(before < *axis ? n.b.iota(before, lead) : n.b.broadcast(place, lead), n.b.rank(place)));
  Value indices = n.b.concat(*axis + 1, numbers);
  return {n.b.create<ds::ScatterNdOp>({cache, indices, update}, ds::ScatterKind::assign, cache, indices, update)};
}

void addIndexing(PatternRegistry &registry) {
  registry.add("Gather", 1, 2, convertGather);
  registry.add("GatherElements", 11, 2, convertGatherElements);
  registry.add("GatherND", 11, 2, convertGatherNd);
  registry.add("Scatter", 9, 3, convertScatterElements);
  registry.add("ScatterElements", 11, 3, convertScatterElements);
  registry.add("ScatterND", 11, 3, convertScatterNd);
  registry.add("NonZero", 9, 1, convertNonZero);
  registry.add("Compress", 9, 2, convertCompress);
  registry.add("TopK", 1, 1, convertTopKAttribute);
  registry.add("TopK", 10, 2, convertTopK);
  registry.add("ReverseSequence", 10, 2, convertReverseSequence);
  registry.add("TensorScatter", 24, 2, convertTensorScatter);
}

} // namespace deepstride::onnx
