#include "codegen/lower/PlainProducts.h"

using namespace mlir;

namespace deepstride {

using ds::ProductTypes;

Value plainProduct(KernelBuilder &k, const Matrix &a, const Matrix &b, Value row, Value column, Value depth,
                   const ProductTypes &types, Value start, Conversion convert) {
  auto as = [&](Value value, Type element) {
    return element == types.result ? value : emitCast(k.b, k.loc, value, element, types.result);
  };
  auto combine = [&](ds::BinaryKind kind, Value x, Value y) {
    return emitBinary(k.b, k.loc, kind, x, y, types.result, types.result);
  };
  Value cell = k.cell(computeType(types.result));
  memref::StoreOp::create(k.b, k.loc, start, cell);
  k.loop(k.constant(0), depth, k.constant(1), [&](Value step) {
    Value x =
        k.load(a.buffer, k.add(a.offset, k.add(k.mul(row, a.rowStride), k.mul(step, a.columnStride))), types.left);
    Value y =
        k.load(b.buffer, k.add(b.offset, k.add(k.mul(step, b.rowStride), k.mul(column, b.columnStride))), types.right);
    y = as(y, types.right);
    Value product = combine(ds::BinaryKind::mul, as(x, types.left), convert ? convert(y, step) : y);
    Value sum = combine(ds::BinaryKind::add, memref::LoadOp::create(k.b, k.loc, cell), product);
    memref::StoreOp::create(k.b, k.loc, sum, cell);
  });
  return memref::LoadOp::create(k.b, k.loc, cell);
}

void lowerPlainLinear(KernelBuilder &k, ds::LinearOp op, const ProductTypes &types, const Matrix &weight,
                      const SizeExpr &rows, Value depth, Value columns, Epilogue &epilogue) {
  Value one = k.constant(1), zero = k.constant(0), input = k.bufferOf(op.getInput());
  Value bias = op.getBias() ? k.bufferOf(op.getBias()) : Value();
  Value scales = op.getScales() ? k.bufferOf(op.getScales()) : Value();
  Value zeroPoints = op.getZeroPoints() ? k.bufferOf(op.getZeroPoints()) : Value();
  auto combine = [&](ds::BinaryKind kind, Value x, Value y) {
    return emitBinary(k.b, k.loc, kind, x, y, types.result, types.result);
  };
  auto scaleAt = [&](Value place) { return k.load(scales, place, types.result); };
  k.setGrid(rows, 1);
  k.loop(k.begin, k.end, one, [&](Value row) {
    k.loop(zero, columns, one, [&](Value column) {
      auto convert = [&](Value code, Value step) {
        Value group = op.getGroup() ? k.divide(step, k.constant(*op.getGroup())) : zero;
        Value place = k.add(k.mul(group, columns), column);
        if (zeroPoints) {
          Type byte = k.elementOf(op.getZeroPoints());
          Value zeroPoint = emitCast(k.b, k.loc, k.load(zeroPoints, place, byte), byte, types.result);
          code = combine(ds::BinaryKind::sub, code, zeroPoint);
        }
        return op.getGroup() ? combine(ds::BinaryKind::mul, code, scaleAt(place)) : code;
      };
      bool scalesSum = scales && !op.getGroup();
      Value addend = bias ? k.load(bias, column, types.result) : Value();
      Value start = addend && !scalesSum ? addend : scalarConstant(k.b, k.loc, types.result, 0.0);
      Value sum = plainProduct(k, {input, zero, depth, one}, weight, row, column, depth, types, start,
                               scales ? Conversion(convert) : Conversion());
      if (scalesSum)
        sum = combine(ds::BinaryKind::mul, sum, scaleAt(column));
      if (scalesSum && addend)
        sum = combine(ds::BinaryKind::add, sum, addend);
      epilogue.store(sum, {row, column, {}});
    });
  });
}

} // namespace deepstride
