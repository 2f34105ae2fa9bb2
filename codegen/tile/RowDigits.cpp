#include "codegen/tile/RowDigits.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

RowDigits::RowDigits(KernelBuilder &k, const VectorKernel &micro, const SizeExpr &rows, const SizeExpr &depth,
                     const SizeExpr &groups, int64_t group, bool hasZeroPoints)
    : k(k), micro(micro), group(group), less(hasZeroPoints ? 1 : micro.codeBias()) {
  int64_t lanes = micro.lanes();
  isWhole = group % lanes == 0 && SizeExpr::mod(depth, lanes).isConstant(0);
  // What a last vector writes behind the last element, and what a last step reads there.
  bytes = k.scratchOf(k.b.getI8Type(), rows * (depth + SizeExpr(2 * lanes)) * SizeExpr(rowDigits));
  starts = k.scratchOf(k.b.getI32Type(), rows * groups * SizeExpr(rowDigits));
  units = k.scratchOf(k.b.getF32Type(), rows * groups);
}

Value RowDigits::integer(int32_t value) { return arith::ConstantOp::create(k.b, k.loc, k.b.getI32IntegerAttr(value)); }

SmallVector<Value> RowDigits::vectors(Value from, Value to, ValueRange start,
                                      llvm::function_ref<SmallVector<Value>(Value place, Value x, ValueRange)> body) {
  auto floats = VectorType::get({micro.lanes()}, k.b.getF32Type());
  auto loop = scf::ForOp::create(k.b, k.loc, from, to, k.constant(micro.lanes()), start,
                                 [&](OpBuilder &, Location, Value place, ValueRange carried) {
                                   OpBuilder::InsertionGuard guard(k.b);
                                   k.b.setInsertionPointToEnd(place.getParentBlock());
                                   Value mask = isWhole ? Value() : lanesBelow(k, micro.lanes(), k.sub(to, place));
                                   scf::YieldOp::create(
                                       k.b, k.loc, body(place, loadLanes(k, floats, source, place, mask), carried));
                                 });
  return SmallVector<Value>(loop.getResults());
}

/// Elements [from, to), of which `digits` is the place of the first one's lowest digit.
void RowDigits::emitGroup(Value first, Value digits, Value number, Value from, Value to) {
  int64_t lanes = micro.lanes();
  Type i32 = k.b.getI32Type(), f32 = k.b.getF32Type();
  auto words = VectorType::get({lanes}, i32), floats = VectorType::get({lanes}, f32);
  auto splat = [&](Value value, VectorType type) -> Value {
    return vector::BroadcastOp::create(k.b, k.loc, type, value);
  };
  Value zeros = splat(integer(0), words);
  // As integers, magnitudes are in the order of floats, and what is not finite is above all.
  Value magnitude = splat(integer(0x7fffffff), words);
  auto greatest = vectors(k.add(first, from), k.add(first, to), zeros, [&](Value, Value x, ValueRange carried) {
    Value bits = arith::AndIOp::create(k.b, k.loc, vector::BitCastOp::create(k.b, k.loc, words, x), magnitude);
    return SmallVector<Value>{arith::MaxSIOp::create(k.b, k.loc, carried[0], bits)};
  });
  Value most = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::MAXSI, greatest[0]);
  Value isFinite = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, most, integer(0x7f800000));
  // Its exponent, one more where its mantissa would leave a third digit of 128.
  Value exponent =
      arith::ShRSIOp::create(k.b, k.loc, arith::AddIOp::create(k.b, k.loc, most, integer(1 << 17)), integer(23));
  exponent = arith::MaxSIOp::create(k.b, k.loc, exponent, integer(24));
  auto powerOfTwo = [&](Value biased) -> Value {
    return arith::BitcastOp::create(k.b, k.loc, f32, arith::ShLIOp::create(k.b, k.loc, biased, integer(23)));
  };
  Value unit = powerOfTwo(arith::SubIOp::create(k.b, k.loc, exponent, integer(22)));
  Value inverse = splat(powerOfTwo(arith::SubIOp::create(k.b, k.loc, integer(276), exponent)), floats);
  Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(floats));
  Value half = splat(integer(128), words), byte = splat(integer(8), words);
  auto stored = VectorType::get({lanes}, k.b.getI8Type());
  SmallVector<int64_t> order; // of steps in two parts, those of the low halves come first
  for (int64_t place = 0; place < lanes; ++place)
    order.push_back(micro.parts() == 1 ? place : place / 8 * 8 + place % 4 * 2 + place % 8 / 4);
  Value base = k.sub(digits, first); // of what belongs to an element of the row
  auto totals = vectors(
      k.add(first, from), k.add(first, to), {zeros, zeros, zeros}, [&](Value place, Value x, ValueRange carried) {
        x = arith::SelectOp::create(k.b, k.loc, isFinite, x, none); // a conversion that is defined
        Value whole = math::RoundEvenOp::create(k.b, k.loc, arith::MulFOp::create(k.b, k.loc, x, inverse));
        Value rest = arith::FPToSIOp::create(k.b, k.loc, words, whole);
        if (micro.parts() > 1)
          rest = vector::ShuffleOp::create(k.b, k.loc, rest, rest, order);
        SmallVector<Value> next;
        for (int64_t digit = 0; digit < rowDigits; ++digit) {
          if (digit > 0) // what the digit below leaves
            rest = arith::ShRSIOp::create(k.b, k.loc, arith::AddIOp::create(k.b, k.loc, rest, half), byte);
          Value target = k.add(k.add(base, place), k.mul(apart, k.constant(digit)));
          storeLanes(k, arith::TruncIOp::create(k.b, k.loc, stored, rest), bytes, target, {});
          next.push_back(arith::AddIOp::create(k.b, k.loc, carried[digit], rest));
        }
        return next;
      });
  // Modulo 2^32: what a digit left is a digit less 256 times the rest.
  Value above;
  for (int64_t digit = rowDigits; digit-- > 0;) {
    Value total = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::ADD, totals[digit]), sum = total;
    if (above)
      sum = arith::SubIOp::create(k.b, k.loc, total, arith::ShLIOp::create(k.b, k.loc, above, integer(8)));
    above = total;
    k.store(arith::MulIOp::create(k.b, k.loc, sum, integer(-less)), starts,
            k.add(k.mul(number, k.constant(rowDigits)), k.constant(digit)), i32);
  }
  Value nan = arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(std::numeric_limits<float>::quiet_NaN()));
  k.store(arith::SelectOp::create(k.b, k.loc, isFinite, unit, nan), units, number, f32);
}

Matrix RowDigits::emit(const Matrix &rows, Value count, Value depth) {
  Value zero = k.constant(0), one = k.constant(1), lanes = k.constant(micro.lanes());
  source = rows.buffer;
  apart = k.mul(k.add(k.divide(k.add(depth, k.constant(micro.lanes() - 1)), lanes), one), lanes);
  groups = group ? k.ceilDiv(depth, group) : one;
  Value stride = k.mul(apart, k.constant(rowDigits));
  k.loop(zero, count, one, [&](Value row) {
    Value first = k.add(rows.offset, k.mul(row, rows.rowStride)), digits = k.mul(row, stride);
    Value number = k.mul(row, groups);
    if (!group)
      return emitGroup(first, digits, number, zero, depth);
    k.loop(zero, groups, one, [&](Value index) {
      Value from = k.mul(index, k.constant(group));
      emitGroup(first, digits, k.add(number, index), from, k.minimum(k.add(from, k.constant(group)), depth));
    });
  });
  return {bytes, zero, stride, one, {apart, groups, starts, units}};
}

} // namespace deepstride
