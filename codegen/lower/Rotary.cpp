// Rotary position embedding: one grid item is one row of the last axis. Every pair is read once and written once.
#include "codegen/lower/KernelBuilder.h"

using namespace mlir;

namespace deepstride {

LogicalResult lowerRotary(KernelBuilder &k, ds::RotaryOp op) {
  Type element = k.elementOf(op.getInput());
  SizeVector shape = k.sizesOf(op.getInput());
  ArrayRef<SizeExpr> leading = ArrayRef(shape).drop_back();
  int64_t width = *shape.back().constant(), half = width / 2;
  SizeExpr rows = 1;
  SmallVector<unsigned> leadingAxes;
  for (auto [axis, size] : llvm::enumerate(leading)) {
    rows = rows * size;
    leadingAxes.push_back(axis);
  }
  Value input = k.bufferOf(op.getInput()), output = k.outputBuffer(0);
  bool perPair = *k.sizesOf(op.getCosines()).back().constant() == half;
  auto viewOf = [&](Value table) {
    SizeVector target(leading.begin(), leading.end());
    target.push_back(perPair ? half : width);
    return k.broadcastView(k.bufferOf(table), k.sizesOf(table), target);
  };
  View cosines = viewOf(op.getCosines()), sines = viewOf(op.getSines());

  k.setGrid(rows, 8);
  k.setFlops(rows * SizeExpr(3 * width));
  Value one = k.constant(1), zero = k.constant(0), gap = k.constant(half);
  k.loop(k.begin, k.end, one, [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, leading);
    Value row = k.mul(item, k.constant(width));
    Value cosineRow = k.offsetAt(cosines, leadingAxes, at), sineRow = k.offsetAt(sines, leadingAxes, at);
    k.loop(zero, gap, one, [&](Value pair) {
      Value first = op.getInterleaved() ? k.mul(pair, k.constant(2)) : pair;
      Value second = k.add(first, op.getInterleaved() ? one : gap);
      Value a = k.load(input, k.add(row, first), element), b = k.load(input, k.add(row, second), element);
      auto turned = [&](Value place, Value x, Value y, bool adds) -> Value {
        Value column = perPair ? pair : place;
        Value cosine = k.load(cosines.buffer, k.add(cosineRow, column), element);
        Value sine = k.load(sines.buffer, k.add(sineRow, column), element);
        Value straight = arith::MulFOp::create(k.b, k.loc, x, cosine);
        Value across = arith::MulFOp::create(k.b, k.loc, y, sine);
        if (adds)
          return arith::AddFOp::create(k.b, k.loc, straight, across);
        return arith::SubFOp::create(k.b, k.loc, straight, across);
      };
      Value real = turned(first, a, b, false), imaginary = turned(second, b, a, true);
      k.store(real, output, k.add(row, first), element);
      k.store(imaginary, output, k.add(row, second), element);
    });
  });
  return success();
}

} // namespace deepstride
