#include "codegen/tile/RowDigits.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

/// Digits whose sums over a segment become a float together: shifted and added up they stay within 32 bits.
static int64_t digitsAtOnce(const DigitShape &shape, int64_t segment, int64_t bias) {
  if (segment == 0)
    return 1;
  int64_t most = segment * (shape.hasZeroPoints ? 2 * bias - 1 : bias); // of what stands for a column
  constexpr int64_t sumOfTwo = 257 * 128, sumOfThree = 0x7f7f7f;
  int64_t limit = int64_t(1) << 31;
  return most * sumOfThree < limit ? 3 : most * sumOfTwo < limit ? 2 : 1;
}

RowDigits::RowDigits(KernelBuilder &k, const VectorKernel &micro, const DigitShape &shape, const SizeExpr &depth)
    : k(k), micro(micro), less(shape.hasZeroPoints ? 1 : micro.codeBias()) {
  int64_t lanes = micro.lanes(), segment = 0;
  if (shape.group)
    segment = ds::digitSegment(shape.group, micro.interleave, lanes);
  isWhole = segment % lanes == 0 && SizeExpr::mod(depth, lanes).isConstant(0);
  int64_t steps = segment ? segment / micro.interleave : shape.steps, segments = llvm::divideCeil(shape.steps, steps);
  sums.atOnce = digitsAtOnce(shape, segment, micro.codeBias());
  sums.steps = steps;
  sums.allSteps = shape.steps;
  sums.perGroup = segment ? shape.group / segment : 1;
  // What a last vector writes behind the last element, and what a last step reads there.
  int64_t elements = steps * micro.interleave;
  sums.apart = segment ? llvm::alignTo(elements, lanes) : llvm::alignTo(elements, lanes) + lanes;
  bytes = k.scratchOf(k.b.getI8Type(), SizeExpr(shape.rows * segments * sums.apart * rowDigits + lanes));
  sums.starts = k.scratchOf(k.b.getI32Type(), SizeExpr(shape.rows * segments * sums.starting()));
  sums.units = k.scratchOf(k.b.getF32Type(), SizeExpr(shape.rows));
  if (segment)
    sums.totals = k.scratchOf(k.b.getF32Type(), SizeExpr(shape.rows * shape.width));
}

Value RowDigits::integer(int32_t value) { return arith::ConstantOp::create(k.b, k.loc, k.b.getI32IntegerAttr(value)); }

SmallVector<Value> RowDigits::vectors(Value from, Value count, ValueRange start,
                                      llvm::function_ref<SmallVector<Value>(Value place, Value x, ValueRange)> body) {
  auto floats = VectorType::get({micro.lanes()}, k.b.getF32Type());
  auto loop = scf::ForOp::create(k.b, k.loc, k.constant(0), count, k.constant(micro.lanes()), start,
                                 [&](OpBuilder &, Location, Value place, ValueRange carried) {
                                   OpBuilder::InsertionGuard guard(k.b);
                                   k.b.setInsertionPointToEnd(place.getParentBlock());
                                   Value mask = isWhole ? Value() : lanesBelow(k, micro.lanes(), k.sub(count, place));
                                   Value x = loadLanes(k, floats, source, k.add(from, place), mask);
                                   scf::YieldOp::create(k.b, k.loc, body(place, x, carried));
                                 });
  return SmallVector<Value>(loop.getResults());
}

/// Of `depth` elements from `first` on.
RowDigits::Unit RowDigits::emitUnit(Value first, Value depth, Value row) {
  Type f32 = k.b.getF32Type();
  auto words = VectorType::get({micro.lanes()}, k.b.getI32Type());
  auto splat = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(words, value));
  };
  // As integers, magnitudes are in the order of floats, and what is not finite is above all.
  Value magnitude = splat(0x7fffffff);
  auto greatest = vectors(first, depth, splat(0), [&](Value, Value x, ValueRange carried) {
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
  Value nan = arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(std::numeric_limits<float>::quiet_NaN()));
  k.store(arith::SelectOp::create(k.b, k.loc, isFinite, unit, nan), sums.units, row, f32);
  auto floats = VectorType::get({micro.lanes()}, f32);
  Value inverse = powerOfTwo(arith::SubIOp::create(k.b, k.loc, integer(276), exponent));
  return {isFinite, vector::BroadcastOp::create(k.b, k.loc, floats, inverse)};
}

/// Of `count` elements from `first` on: their lowest digits lie from `digits` on, and what their sums start from is to
/// lie from `start` on.
void RowDigits::emitSegment(const Unit &unit, Value first, Value count, Value digits, Value start) {
  int64_t lanes = micro.lanes();
  Type i32 = k.b.getI32Type();
  auto words = VectorType::get({lanes}, i32), floats = VectorType::get({lanes}, k.b.getF32Type());
  auto splat = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(words, value));
  };
  Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(floats));
  Value half = splat(128), byte = splat(8);
  auto stored = VectorType::get({lanes}, k.b.getI8Type());
  SmallVector<int64_t> order; // of steps in two parts, those of the low halves come first
  for (int64_t place = 0; place < lanes; ++place)
    order.push_back(micro.parts() == 1 ? place : place / 8 * 8 + place % 4 * 2 + place % 8 / 4);
  // Of what each sum that becomes a float has below it: of whole numbers, and of what the digits of others leave.
  SmallVector<Value> zeros(sums.starting(), splat(0));
  auto totals = vectors(first, count, zeros, [&](Value place, Value x, ValueRange carried) {
    x = arith::SelectOp::create(k.b, k.loc, unit.isFinite, x, none); // a conversion that is defined
    Value whole = math::RoundEvenOp::create(k.b, k.loc, arith::MulFOp::create(k.b, k.loc, x, unit.inverse));
    Value rest = arith::FPToSIOp::create(k.b, k.loc, words, whole);
    if (micro.parts() > 1)
      rest = vector::ShuffleOp::create(k.b, k.loc, rest, rest, order);
    SmallVector<Value> next;
    for (int64_t digit = 0; digit < rowDigits; ++digit) {
      if (digit > 0) // what the digit below leaves
        rest = arith::ShRSIOp::create(k.b, k.loc, arith::AddIOp::create(k.b, k.loc, rest, half), byte);
      Value target = k.add(k.add(digits, place), k.constant(sums.apart * digit));
      storeLanes(k, arith::TruncIOp::create(k.b, k.loc, stored, rest), bytes, target, {});
      if (digit == 0 || digit >= sums.atOnce)
        next.push_back(arith::AddIOp::create(k.b, k.loc, carried[next.size()], rest));
    }
    return next;
  });
  // Modulo 2^32: what digits are is what they left less the rest, as many digits higher.
  Value above;
  for (int64_t part = sums.starting(); part-- > 0;) {
    Value total = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::ADD, totals[part]), sum = total;
    int32_t bits = 8 * (part == 0 ? sums.atOnce : 1);
    if (above)
      sum = arith::SubIOp::create(k.b, k.loc, total, arith::ShLIOp::create(k.b, k.loc, above, integer(bits)));
    above = total;
    k.store(arith::MulIOp::create(k.b, k.loc, sum, integer(-less)), sums.starts, k.add(start, k.constant(part)), i32);
  }
}

Matrix RowDigits::emit(const Matrix &rows, Value count, Value depth) {
  Value zero = k.constant(0), one = k.constant(1);
  source = rows.buffer;
  sums.rows = count;
  Value stride = k.constant(sums.apart * rowDigits), segment = k.constant(sums.steps * micro.interleave);
  bool hasOne = sums.allSteps == sums.steps;
  k.loop(zero, count, one, [&](Value row) {
    Value first = k.add(rows.offset, k.mul(row, rows.rowStride));
    Unit unit = emitUnit(first, depth, row);
    auto emitNumber = [&](Value number, Value elements) {
      Value place = k.add(k.mul(number, count), row);
      emitSegment(unit, k.add(first, k.mul(number, segment)), elements, k.mul(place, stride),
                  k.mul(place, k.constant(sums.starting())));
    };
    if (hasOne)
      return emitNumber(zero, depth);
    Value whole = k.divide(depth, segment), rest = k.sub(depth, k.mul(whole, segment));
    k.loop(zero, whole, one, [&](Value number) { emitNumber(number, segment); });
    k.loop(zero, k.minimum(rest, one), one, [&](Value) { emitNumber(whole, rest); });
  });
  return {bytes, zero, stride, one, sums};
}

} // namespace deepstride
