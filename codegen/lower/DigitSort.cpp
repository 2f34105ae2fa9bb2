// The order of single elements, digit by digit: a pass for every byte of a key puts items with equal bytes beside each
// other and leaves them in the order in which they were, from the last byte to the first. An element is read about
// twice a pass, whatever their number is. Bytes that all keys share, as the upper ones of small numbers, are one pass
// over the elements only.
#include "codegen/lower/Lines.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace deepstride {

Value orderedKey(KernelBuilder &k, Value x, Type element, NanPlace nan) {
  OpBuilder &b = k.b;
  Type type = x.getType();
  unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Type integer = IntegerType::get(b.getContext(), bits), shaped = integer;
  auto vector = dyn_cast<VectorType>(type);
  if (vector)
    shaped = vector.clone(integer);
  auto constant = [&](const APInt &value) -> Value {
    TypedAttr attribute = b.getIntegerAttr(integer, value);
    if (vector)
      attribute = DenseElementsAttr::get(cast<VectorType>(shaped), value);
    return arith::ConstantOp::create(b, k.loc, attribute);
  };
  if (!isa<FloatType>(element)) // the sign of an unsigned one is its greatest digit
    return element.isUnsignedInteger()
               ? arith::XOrIOp::create(b, k.loc, x, constant(APInt::getSignedMinValue(bits))).getResult()
               : x;
  Value zero = arith::ConstantOp::create(b, k.loc, b.getZeroAttr(type)); // both zeros with it are one
  Value pattern = arith::BitcastOp::create(b, k.loc, shaped, arith::AddFOp::create(b, k.loc, x, zero));
  Value sign = arith::ShRSIOp::create(b, k.loc, pattern, constant(APInt(bits, bits - 1)));
  APInt most = APInt::getSignedMaxValue(bits);
  Value flipped = arith::AndIOp::create(b, k.loc, sign, constant(most));
  Value ordered = arith::XOrIOp::create(b, k.loc, pattern, flipped);
  Value isNaN = arith::CmpFOp::create(b, k.loc, arith::CmpFPredicate::UNO, x, x);
  // The keys of infinities are less, and greater than the least but one.
  APInt place = nan == NanPlace::Last ? most : APInt::getSignedMinValue(bits) + 1;
  return arith::SelectOp::create(b, k.loc, isNaN, constant(place), ordered);
}

namespace {
class DigitSort {
public:
  DigitSort(KernelBuilder &k, Value input, Type element, const SizeExpr &count)
      : k(k), b(k.b), loc(k.loc), input(input), element(element), count(k.index(count)),
        other(k.scratchOf(k.b.getI64Type(), count)), places(k.scratchOf(k.b.getI64Type(), 256)) {}
  void emit(Value output);

private:
  Value digitOf(Value item, unsigned digit);
  Value load(Value buffer, Value place) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), memref::LoadOp::create(b, loc, buffer, place));
  }
  void store(Value value, Value buffer, Value place) {
    memref::StoreOp::create(b, loc, arith::IndexCastOp::create(b, loc, b.getI64Type(), value), buffer, place);
  }

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  Value input;
  Type element;
  Value count, other, places;
};
} // namespace

Value DigitSort::digitOf(Value item, unsigned digit) {
  Value key = orderedKey(k, k.load(input, item, element), element, NanPlace::Last);
  auto type = cast<IntegerType>(key.getType());
  auto constant = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  unsigned bits = type.getWidth();
  key = arith::XOrIOp::create(b, loc, key, constant(APInt::getSignedMinValue(bits))); // the least one is 0
  key = arith::ShRUIOp::create(b, loc, key, constant(APInt(bits, 8 * digit)));
  key = arith::AndIOp::create(b, loc, key, constant(APInt(bits, 255)));
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), key);
}

void DigitSort::emit(Value output) {
  Value zero = k.constant(0), one = k.constant(1), digits = k.constant(256), from = output, to = other;
  k.loop(zero, count, one, [&](Value item) { store(item, output, item); });
  Value isMoved = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  for (unsigned digit = 0, bytes = computeType(element).getIntOrFloatBitWidth() / 8; digit < bytes; ++digit) {
    k.loop(zero, digits, one, [&](Value place) { store(zero, places, place); });
    k.loop(zero, count, one, [&](Value item) {
      Value place = digitOf(item, digit);
      store(k.add(load(places, place), one), places, place);
    });
    Value all = load(places, digitOf(zero, digit));
    Value differs = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, all, count);
    auto branch = scf::IfOp::create(b, loc, differs, /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      auto sums = scf::ForOp::create(b, loc, zero, digits, one, ValueRange{zero});
      {
        OpBuilder::InsertionGuard inner(b);
        b.setInsertionPointToStart(sums.getBody());
        Value place = sums.getInductionVar(), before = sums.getRegionIterArg(0), number = load(places, place);
        store(before, places, place);
        scf::YieldOp::create(b, loc, k.add(before, number));
      }
      k.loop(zero, count, one, [&](Value i) {
        Value item = load(from, i), place = digitOf(item, digit), target = load(places, place);
        store(item, to, target);
        store(k.add(target, one), places, place);
      });
    }
    Value next = arith::SelectOp::create(b, loc, differs, to, from);
    to = arith::SelectOp::create(b, loc, differs, from, to);
    from = next;
    isMoved = arith::XOrIOp::create(b, loc, isMoved, differs);
  }
  auto branch = scf::IfOp::create(b, loc, isMoved, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  k.loop(zero, count, one, [&](Value i) { store(load(other, i), output, i); });
}

bool lowerArgsortDigits(KernelBuilder &k, ds::ArgsortOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  unsigned bits = computeType(element).getIntOrFloatBitWidth();
  if (k.target.reference || !product(ArrayRef(shape).drop_front()).isConstant(1) || bits < 8 || bits > 64)
    return false;
  k.setGrid(1, 1);
  k.setFlops(shape[0] * SizeExpr(static_cast<int64_t>(bits / 8)));
  DigitSort sort(k, k.bufferOf(op.getInput()), element, shape[0]);
  k.loop(k.begin, k.end, k.constant(1), [&](Value) {
    Value exists = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sgt, k.index(shape[0]), k.constant(0));
    auto branch = scf::IfOp::create(k.b, k.loc, exists, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    sort.emit(k.outputBuffer(0));
  });
  return true;
}

} // namespace deepstride
