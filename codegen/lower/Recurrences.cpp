// Linear attention, whose steps depend on their own earlier results. One grid item is one independent chain of steps.
#include "codegen/lower/KernelBuilder.h"

using namespace mlir;

namespace deepstride {

// A column of the state depends on no other column: it is one grid item, and lives where the last state is returned.
LogicalResult lowerLinearAttention(KernelBuilder &k, ds::LinearAttentionOp op) {
  SizeVector query = k.sizesOf(op.getQuery()), key = k.sizesOf(op.getKey()), value = k.sizesOf(op.getValue());
  SizeVector state = k.sizesOf(op.getState()), result = k.sizesOf(op.getResult());
  Type element = k.elementOf(op.getQuery());
  SizeVector items = {key[0], key[1], value[3]};
  Value zero = k.constant(0), one = k.constant(1), depth = k.index(key[3]), columns = k.outputBuffer(1);
  Value group = k.index(SizeExpr::floorDiv(query[1], key[1]));
  Value scale = scalarConstant(k.b, k.loc, element, op.getScale().convertToDouble());
  Value sum = k.cell(computeType(element)), update = k.cell(computeType(element));
  auto mul = [&](Value a, Value b) { return emitBinary(k.b, k.loc, ds::BinaryKind::mul, a, b, element, element); };
  auto add = [&](Value a, Value b) { return emitBinary(k.b, k.loc, ds::BinaryKind::add, a, b, element, element); };
  auto read = [&](Value tensor, ArrayRef<Value> at) {
    return k.load(k.bufferOf(tensor), k.linearize(at, k.sizesOf(tensor)), element);
  };
  auto clear = [&] { memref::StoreOp::create(k.b, k.loc, scalarConstant(k.b, k.loc, element, 0.0), sum); };
  auto accumulate = [&](Value x) {
    memref::StoreOp::create(k.b, k.loc, add(memref::LoadOp::create(k.b, k.loc, sum), x), sum);
  };
  k.setGrid(product(items), 1);
  k.setFlops(product(items) * key[2] * key[3] * SizeExpr(4));
  k.loop(k.begin, k.end, one, [&](Value item) {
    SmallVector<Value> place = k.delinearize(item, items);
    Value batch = place[0], head = place[1], column = place[2];
    auto cellAt = [&](Value row) { return k.linearize({batch, head, row, column}, state); };
    k.loop(zero, depth, one, [&](Value row) {
      k.store(k.load(k.bufferOf(op.getState()), cellAt(row), element), columns, cellAt(row), element);
    });
    k.loop(zero, k.index(key[2]), one, [&](Value step) {
      clear();
      k.loop(zero, depth, one, [&](Value row) {
        Value decayed = mul(k.load(columns, cellAt(row), element), read(op.getDecay(), {batch, head, step, row}));
        k.store(decayed, columns, cellAt(row), element);
        accumulate(mul(decayed, read(op.getKey(), {batch, head, step, row})));
      });
      Value written = read(op.getValue(), {batch, head, step, column});
      if (op.getDelta()) {
        Value known = memref::LoadOp::create(k.b, k.loc, sum);
        Value rest = emitBinary(k.b, k.loc, ds::BinaryKind::sub, written, known, element, element);
        written = mul(read(op.getBeta(), {batch, head, step}), rest);
      }
      memref::StoreOp::create(k.b, k.loc, written, update);
      k.loop(zero, depth, one, [&](Value row) {
        Value change = mul(read(op.getKey(), {batch, head, step, row}), memref::LoadOp::create(k.b, k.loc, update));
        k.store(add(k.load(columns, cellAt(row), element), change), columns, cellAt(row), element);
      });
      k.loop(zero, group, one, [&](Value member) {
        Value reader = k.add(k.mul(head, group), member);
        clear();
        k.loop(zero, depth, one, [&](Value row) {
          accumulate(mul(read(op.getQuery(), {batch, reader, step, row}), k.load(columns, cellAt(row), element)));
        });
        k.store(mul(memref::LoadOp::create(k.b, k.loc, sum), scale), k.outputBuffer(0),
                k.linearize({batch, reader, step, column}, result), element);
      });
    });
  });
  return success();
}

} // namespace deepstride
