// Transposes that put two or four elements side by side which lie apart, each of a row of its own, as the last step of
// a transposed convolution whose windows do not overlap, or of DepthToSpace: rows are read in vectors, and interleaved
// in registers. The general form, in Elementwise.cpp, transposes squares, which need as many rows as vectors have
// lanes.
#include "codegen/lower/KernelBuilder.h"
#include "codegen/tile/Gemm.h"
#include "codegen/tile/Transpose.h"

using namespace mlir;

namespace deepstride {

bool lowerInterleave(KernelBuilder &k) {
  auto op = k.ops().size() == 1 ? dyn_cast<ds::TransposeOp>(k.ops().front()) : ds::TransposeOp();
  if (!op || k.target.lanes <= 1)
    return false;
  ArrayRef<int64_t> order = op.getPermutation();
  SizeVector sizes = k.sizesOf(op.getResult()), strides = KernelBuilder::strides(k.sizesOf(op.getOperand()));
  size_t rank = order.size();
  auto parts = rank < 2 ? std::nullopt : sizes.back().constant();
  if (!parts || (*parts != 2 && *parts != 4) || order[rank - 2] + 1 != static_cast<int64_t>(rank))
    return false;
  Type element = storageType(k.elementOf(op.getResult()));
  int64_t lanes = k.target.lanes * 32 / static_cast<int64_t>(element.getIntOrFloatBitWidth());
  auto type = VectorType::get({lanes}, element);
  Value from = k.bufferOf(op.getOperand()), to = k.outputBuffer(0), zero = k.constant(0), one = k.constant(1);
  Value row = k.index(sizes[rank - 2]), apart = k.index(strides[order.back()]), count = k.constant(*parts);
  // An item is a part of a row, so that threads share even a single one.
  constexpr int64_t mostOfRow = 1024, itemsAtOnce = 8;
  auto outer = ArrayRef(sizes).drop_back(2);
  k.setGrid(product(outer) * SizeExpr::ceilDiv(sizes[rank - 2], mostOfRow), itemsAtOnce);
  k.setFlops(0);
  Value pieces = k.ceilDiv(row, mostOfRow);
  k.loop(k.begin, k.end, one, [&](Value item) {
    Value line = k.divide(item, pieces), first = k.mul(k.remainder(item, pieces), k.constant(mostOfRow));
    Value source = zero, target = k.mul(line, k.mul(row, count));
    for (auto [axis, place] : llvm::enumerate(k.delinearize(line, outer)))
      source = k.add(source, k.mul(place, k.index(strides[order[axis]])));
    auto of = [&](int64_t part, Value at) { return k.add(source, k.add(at, k.mul(apart, k.constant(part)))); };
    Value end = k.minimum(k.add(first, k.constant(mostOfRow)), row);
    Value whole = k.sub(end, k.remainder(k.sub(end, first), k.constant(lanes)));
    k.loop(first, whole, k.constant(lanes), [&](Value at) {
      SmallVector<Value> rows;
      for (int64_t part = 0; part < *parts; ++part)
        rows.push_back(loadLanes(k, type, from, of(part, at), {}));
      storeLanes(k, interleaveInRegisters(k.b, k.loc, std::move(rows)), to, k.add(target, k.mul(at, count)), {});
    });
    k.loop(whole, end, one, [&](Value at) {
      for (int64_t part = 0; part < *parts; ++part) {
        Value value = memref::LoadOp::create(k.b, k.loc, from, of(part, at));
        memref::StoreOp::create(k.b, k.loc, value, to, k.add(target, k.add(k.mul(at, count), k.constant(part))));
      }
    });
  });
  return true;
}

} // namespace deepstride
