#include "codegen/cpu/micro/MicroKernels.h"
#include "codegen/tile/Gemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

Value broadcastWord(KernelBuilder &k, int64_t lanes, Value buffer, Value position, Value count) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType(), word = k.b.getI32Type();
  int64_t elements = 32 / element.getIntOrFloatBitWidth();
  Value bits;
  if (count && elements == 2) { // one of two
    Value first = memref::LoadOp::create(k.b, k.loc, buffer, position);
    bits = arith::ExtUIOp::create(k.b, k.loc, word, first);
  } else {
    Value mask = count ? lanesBelow(k, elements, count) : Value();
    Value loaded = loadLanes(k, VectorType::get({elements}, element), buffer, position, mask);
    Value one = vector::BitCastOp::create(k.b, k.loc, VectorType::get({1}, word), loaded);
    bits = vector::ExtractOp::create(k.b, k.loc, one, ArrayRef<int64_t>{0});
  }
  return vector::BroadcastOp::create(k.b, k.loc, VectorType::get({lanes}, word), bits);
}

} // namespace deepstride
