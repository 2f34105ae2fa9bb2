// Zips of halves: after log2(lanes) rounds, each of as many shuffles as there are rows, rows have become columns.
#include "codegen/tile/Transpose.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

SmallVector<Value> transposeInRegisters(OpBuilder &b, Location loc, SmallVector<Value> rows) {
  auto lanes = static_cast<int64_t>(rows.size());
  SmallVector<int64_t> low, high; // the zipped halves of two vectors
  for (int64_t i = 0; i < lanes / 2; ++i) {
    low.append({i, lanes + i});
    high.append({lanes / 2 + i, lanes + lanes / 2 + i});
  }
  for (int64_t width = 1; width < lanes; width *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < lanes / 2; ++i)
      for (const SmallVector<int64_t> &half : {low, high})
        next.push_back(vector::ShuffleOp::create(b, loc, rows[i], rows[lanes / 2 + i], half));
    rows = std::move(next);
  }
  return rows;
}

Value interleaveInRegisters(OpBuilder &b, Location loc, SmallVector<Value> rows) {
  // Those half of them apart become neighbours last: 0 2 and 1 3, then 0 1 2 3.
  while (rows.size() > 1) {
    size_t half = rows.size() / 2;
    for (size_t i = 0; i < half; ++i)
      rows[i] = vector::InterleaveOp::create(b, loc, rows[i], rows[i + half]);
    rows.resize(half);
  }
  return rows.front();
}

} // namespace deepstride
