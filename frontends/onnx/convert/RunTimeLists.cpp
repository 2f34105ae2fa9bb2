// Spreads lists over axes with ops of the program, and reads the results back as sizes.
#include "frontends/onnx/convert/RunTimeLists.h"
#include "frontends/onnx/convert/RunTimeAxes.h"

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::ReduceKind;

bool isOpenList(Node &n, unsigned input) {
  TensorFacts facts = n.b.facts(n.in(input));
  return facts.rank() == 1 && !facts.sizes[0].constant() && !facts.contents;
}

SpreadList::SpreadList(Node &n, Value axes, const SizeExpr &length, int64_t rank, bool mayRepeat)
    : n(n), rank(rank), length(length) {
  DsBuilder &b = n.b;
  Value end = b.scalar(b.i64(), static_cast<double>(rank));
  Value own = axes ? b.reshape(b.cast(axes, b.i64()), {length}) : b.iota(0, {length});
  Value fromFront = b.select(b.binary(BinaryKind::lt, own, 0.0), b.add(own, end), own);
  hits = b.binary(BinaryKind::eq, b.insertAxis(fromFront, 1), b.iota(1, {1, SizeExpr(rank)}));
  Value count = b.reduce(ReduceKind::sum, b.cast(hits, b.i64()), {0}, /*keep=*/false);
  isMeant = b.binary(BinaryKind::gt, count, 0.0);
  // What is no axis, or the same axis again, would be no element's.
  Value times = mayRepeat ? b.reduce(ReduceKind::max, b.cast(hits, b.i64()), {1}, false) : Value();
  Value found = b.reduce(ReduceKind::sum, mayRepeat ? times : b.cast(isMeant, b.i64()), {0}, false);
  std::string last = std::to_string(rank - 1), first = std::to_string(-rank);
  if (found)
    requireFor(n, computedSize(n, found), length,
               !axes       ? "a list of at most " + std::to_string(rank) + " elements"
               : mayRepeat ? "axes from " + first + " to " + last
                           : "axes from " + first + " to " + last + ", each at most once");
}

/// Whole numbers of a vector, which may be negative, as sizes.
static SizeVector asSizes(Node &n, Value vector, int64_t rank) {
  constexpr int64_t largest = SizeExpr::largestDimension + 1; // beyond every axis
  DsBuilder &b = n.b;
  auto limit = [&](int64_t value) { return b.scalar(b.i64(), static_cast<double>(value)); };
  Value clamped = b.binary(BinaryKind::max, b.binary(BinaryKind::min, vector, limit(largest)), limit(-largest));
  Value shifted = b.add(clamped, limit(largest));
  SizeVector sizes;
  for (int64_t i = 0; i < rank && shifted; ++i)
    sizes.push_back(computedSize(n, b.sliceAxis(shifted, 0, i, 1)) - SizeExpr(largest));
  return sizes;
}

SizeVector SpreadList::flags() {
  SizeVector sizes;
  for (int64_t i = 0; i < rank && isMeant; ++i)
    sizes.push_back(computedSize(n, n.b.sliceAxis(isMeant, 0, i, 1)));
  return sizes;
}

SizeVector SpreadList::elements(Value list, int64_t fallback) {
  DsBuilder &b = n.b;
  Value own = b.reshape(b.cast(list, b.i64()), {length, 1}), none = b.integers({fallback});
  Value sums = b.reduce(ReduceKind::sum, b.select(hits, own, b.scalar(b.i64(), 0)), {0}, /*keep=*/false);
  return asSizes(n, b.select(isMeant, sums, none), rank);
}

} // namespace deepstride::onnx
