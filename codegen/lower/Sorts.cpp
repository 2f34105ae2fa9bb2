// Kernels that sort: the k first elements along an axis, and the order of the slices of a tensor, of several elements
// each (single ones: DigitSort.cpp). Both sort indices in the buffer of their result, by a heap whose root is the last
// one in the order: no memory beside it, and O(n log k) steps whatever the elements are. The index decides between
// equal ones, so the result is that of a stable sort.
#include "codegen/lower/Lines.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace deepstride {

Value precedes(KernelBuilder &k, Value x, Value y, Type element, bool greatest, NanPlace nan) {
  if (!isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return emitBinary(k.b, k.loc, greatest ? ds::BinaryKind::gt : ds::BinaryKind::lt, x, y, element, element);
  Value ordered =
      arith::CmpFOp::create(k.b, k.loc, greatest ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x, y);
  auto [earlier, later] = nan == NanPlace::First ? std::pair(x, y) : std::pair(y, x);
  Value isNan = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::UNO, earlier, earlier);
  Value isNumber = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::ORD, later, later);
  return arith::OrIOp::create(k.b, k.loc, ordered, arith::AndIOp::create(k.b, k.loc, isNan, isNumber));
}

namespace {
/// Sorts indices of items. A slot of the heap is an element of the buffer that holds them.
struct Heap {
  KernelBuilder &k;
  Value buffer, size;                                          // i64 elements, an index
  llvm::function_ref<Value(Value slot)> positionOf;            // of a slot in the buffer
  llvm::function_ref<Value(Value item, Value other)> isBefore; // of two different items, strictly

  /// Leaves the `size` first of `count` items in their order; `size` is not greater than `count`.
  void select(Value count);

private:
  Value at(Value slot) {
    Value item = memref::LoadOp::create(k.b, k.loc, buffer, positionOf(slot));
    return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), item);
  }
  void put(Value slot, Value item) {
    Value wide = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), item);
    memref::StoreOp::create(k.b, k.loc, wide, buffer, positionOf(slot));
  }
  void sink(Value item, Value from, Value end);
};
} // namespace

/// Puts an item into the hole at slot `from` of a heap of `end` slots, at least one: moves up what comes later.
void Heap::sink(Value item, Value from, Value end) {
  Value one = k.constant(1), last = k.sub(end, one);
  Type index = k.b.getIndexType();
  auto loop = scf::WhileOp::create(
      k.b, k.loc, TypeRange{index, index, index}, ValueRange{from},
      [&](OpBuilder &b, Location loc, ValueRange hole) {
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToEnd(b.getInsertionBlock());
        // Slots behind the end stand for the last one, so that whatever is read exists.
        Value left = k.add(k.mul(hole[0], k.constant(2)), one);
        Value first = k.minimum(left, last), second = k.minimum(k.add(left, one), last);
        Value firstItem = at(first), secondItem = at(second);
        Value isSecond = isBefore(firstItem, secondItem);
        Value child = arith::SelectOp::create(k.b, loc, isSecond, second, first);
        Value childItem = arith::SelectOp::create(k.b, loc, isSecond, secondItem, firstItem);
        Value exists = arith::CmpIOp::create(k.b, loc, arith::CmpIPredicate::slt, left, end);
        Value goesOn = arith::AndIOp::create(k.b, loc, exists, isBefore(item, childItem));
        scf::ConditionOp::create(k.b, loc, goesOn, ValueRange{hole[0], child, childItem});
      },
      [&](OpBuilder &b, Location loc, ValueRange step) {
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToEnd(b.getInsertionBlock());
        put(step[0], step[2]);
        scf::YieldOp::create(k.b, loc, step[1]);
      });
  put(loop.getResult(0), item);
}

void Heap::select(Value count) {
  Value zero = k.constant(0), one = k.constant(1);
  k.loop(zero, size, one, [&](Value i) { put(i, i); });
  Value half = k.divide(size, k.constant(2));
  k.loop(zero, half, one, [&](Value i) {
    Value slot = k.sub(k.sub(half, one), i);
    sink(at(slot), slot, size);
  });
  // Items that come before the last one that is kept take its place; nothing is kept in no slots.
  Value isEmpty = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, size, zero);
  k.loop(size, arith::SelectOp::create(k.b, k.loc, isEmpty, zero, count), one, [&](Value i) {
    auto branch = scf::IfOp::create(k.b, k.loc, isBefore(i, at(zero)), /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    sink(i, zero, size);
  });
  // The root is the last of those that are left: it goes to the end.
  k.loop(one, size, one, [&](Value i) {
    Value end = k.sub(size, i), item = at(end);
    put(end, at(zero));
    sink(item, zero, end);
  });
}

/// Lesser indices first among equal items.
static Value isBeforeByIndex(KernelBuilder &k, Value less, Value greater, Value item, Value other) {
  Value isLess = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, item, other);
  return arith::SelectOp::create(k.b, k.loc, arith::OrIOp::create(k.b, k.loc, less, greater), less, isLess);
}

LogicalResult lowerArgsort(KernelBuilder &k, ds::ArgsortOp op) {
  if (lowerArgsortDigits(k, op))
    return success();
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  SizeExpr columns = product(ArrayRef(shape).drop_front());
  Value input = k.bufferOf(op.getInput()), width = k.index(columns), zero = k.constant(0), one = k.constant(1);
  Value count = k.index(shape[0]), lastColumn = k.sub(width, one);
  Type i1 = k.b.getI1Type(), index = k.b.getIndexType();
  k.setGrid(1, 1);
  k.setFlops(product(shape) * SizeExpr(16));

  auto isBefore = [&](Value item, Value other) -> Value {
    Value row = k.mul(item, width), otherRow = k.mul(other, width);
    auto compare = [&](Value column) {
      Value x = k.load(input, k.add(row, column), element), y = k.load(input, k.add(otherRow, column), element);
      return std::pair(precedes(k, x, y, element, /*greatest=*/false, NanPlace::Last),
                       precedes(k, y, x, element, /*greatest=*/false, NanPlace::Last));
    };
    if (columns.isConstant(1)) {
      auto [less, greater] = compare(zero);
      return isBeforeByIndex(k, less, greater, item, other);
    }
    // Along the columns up to the first that differs.
    auto loop = scf::WhileOp::create(
        k.b, k.loc, TypeRange{index, i1, i1}, ValueRange{zero},
        [&](OpBuilder &b, Location loc, ValueRange column) {
          OpBuilder::InsertionGuard guard(k.b);
          k.b.setInsertionPointToEnd(b.getInsertionBlock());
          Value exists = arith::CmpIOp::create(k.b, loc, arith::CmpIPredicate::slt, column[0], width);
          auto [less, greater] = compare(k.minimum(column[0], lastColumn));
          Value isLess = arith::AndIOp::create(k.b, loc, exists, less);
          Value isGreater = arith::AndIOp::create(k.b, loc, exists, greater);
          Value differs = arith::OrIOp::create(k.b, loc, isLess, isGreater);
          Value goesOn = arith::CmpIOp::create(k.b, loc, arith::CmpIPredicate::ugt, exists, differs);
          scf::ConditionOp::create(k.b, loc, goesOn, ValueRange{column[0], isLess, isGreater});
        },
        [&](OpBuilder &b, Location loc, ValueRange step) {
          OpBuilder::InsertionGuard guard(k.b);
          k.b.setInsertionPointToEnd(b.getInsertionBlock());
          scf::YieldOp::create(k.b, loc, k.add(step[0], one));
        });
    return isBeforeByIndex(k, loop.getResult(1), loop.getResult(2), item, other);
  };
  k.loop(k.begin, k.end, one, [&](Value) {
    // Slices without elements are equal: they keep their order, and there is nothing to read.
    Value isEmpty = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, width, zero);
    auto branch = scf::IfOp::create(k.b, k.loc, isEmpty, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    k.loop(zero, count, one, [&](Value i) {
      Value wide = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), i);
      memref::StoreOp::create(k.b, k.loc, wide, k.outputBuffer(0), i);
    });
    k.b.setInsertionPointToStart(branch.elseBlock());
    Heap{k, k.outputBuffer(0), count, [](Value slot) { return slot; }, isBefore}.select(count);
  });
  return success();
}

LogicalResult lowerTopK(KernelBuilder &k, ds::TopKOp op) {
  SizeVector shape = k.sizesOf(op.getInput());
  Type element = k.elementOf(op.getInput());
  Lines lines(k, shape, op.getAxis());
  SizeExpr kept = k.sizesOf(op.getValues())[op.getAxis()];
  Value limit = k.index(kept), length = k.index(lines.length);
  Value input = k.bufferOf(op.getInput()), values = k.outputBuffer(0), indices = k.outputBuffer(1);
  k.setFlops(product(shape));
  lines.forEach([&](Value outer, Value within) {
    auto elementAt = [&](Value i) { return k.load(input, lines.at(outer, within, i, lines.length), element); };
    auto isBefore = [&](Value item, Value other) {
      Value x = elementAt(item), y = elementAt(other);
      return isBeforeByIndex(k, precedes(k, x, y, element, op.getLargest()),
                             precedes(k, y, x, element, op.getLargest()), item, other);
    };
    auto positionOf = [&](Value slot) { return lines.at(outer, within, slot, kept); };
    Heap{k, indices, limit, positionOf, isBefore}.select(length);
    k.loop(k.constant(0), limit, k.constant(1), [&](Value slot) {
      Value wide = memref::LoadOp::create(k.b, k.loc, indices, positionOf(slot));
      Value item = arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), wide);
      k.store(elementAt(item), values, positionOf(slot), element);
    });
  });
  return success();
}

} // namespace deepstride
