// Reductions along the innermost loop: chains of vectors side by side, folded in a fixed order, and a scalar tail.
// Where elements lie apart, the chains are of scalars.
#include "codegen/cpu/Extremes.h"
#include "codegen/cpu/RowVectorizer.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

/// What the combining op of a reduction makes of two vectors or scalars.
Value RowVectorizer::combineLike(Operation *combine, Value x, Value y) {
  OperationState state(loc, combine->getName(), {x, y}, {x.getType()}, combine->getAttrs());
  return b.create(state)->getResult(0);
}

/// The greatest and the least are a chain of five instructions a vector, but of one where they are floats that compare.
bool RowVectorizer::hasExtremes() {
  Type type;
  for (unsigned number = 0; number < op.getNumDpsInits(); ++number)
    if (Operation *combine = combineOf(number); isExtreme(combine)) {
      Type own = combine->getResult(0).getType();
      if (type && own != type)
        return false;
      type = own;
    }
  return type != nullptr;
}

/// Chains side by side over [from, to): one would wait for every combination before the next begins. Folded in a fixed
/// order.
SmallVector<Value> RowVectorizer::emitChains(ArrayRef<Value> outer, Value from, Value to, ArrayRef<Value> initial,
                                             int64_t width) {
  SmallVector<Value> parallel, folded;
  for (int64_t chain = 0; chain < chainCount; ++chain)
    parallel.append(initial.begin(), initial.end());
  if (compares)
    parallel.push_back(flags);
  emitSpan(outer, from, to, width, parallel, chainCount);
  if (compares)
    flags = parallel.back();
  for (unsigned number = 0; number < initial.size(); ++number) {
    Operation *combine = combineOf(number);
    auto of = [&](size_t chain) { return parallel[chain * initial.size() + number]; };
    folded.push_back(combineLike(combine, combineLike(combine, of(0), of(1)), combineLike(combine, of(2), of(3))));
  }
  return folded;
}

/// Chains that compare, and once more chains that combine, where a NaN was seen or a result is 0 of either sign.
SmallVector<Value> RowVectorizer::emitExtremes(ArrayRef<Value> outer, Value from, Value to, ArrayRef<Value> initial) {
  SmallVector<unsigned> numbers;
  for (unsigned number = 0; number < initial.size(); ++number)
    if (isExtreme(combineOf(number)))
      numbers.push_back(number);
  Type type = initial[numbers[0]].getType();
  flags = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  // What comparing saves of two steps or fewer is less than asking whether it was exact.
  Value length = arith::SubIOp::create(b, loc, to, from);
  Value few = arith::ConstantIndexOp::create(b, loc, 2 * chainCount * lanes);
  Value isShort = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, length, few);
  compares = true;
  SmallVector<Value> quick =
      emitChains(outer, from, arith::SelectOp::create(b, loc, isShort, from, to), initial, lanes);
  compares = false;
  Value isInexact = arith::OrIOp::create(b, loc, isShort, anyNaN(b, loc, flags));
  for (unsigned number : numbers)
    isInexact = arith::OrIOp::create(b, loc, isInexact, isZeroExtreme(b, combineOf(number), quick[number]));
  auto again = scf::IfOp::create(b, loc, TypeRange(ValueRange(quick)), isInexact, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(again.thenBlock());
  scf::YieldOp::create(b, loc, emitChains(outer, from, to, initial, lanes));
  b.setInsertionPointToStart(again.elseBlock());
  scf::YieldOp::create(b, loc, quick);
  return again.getResults();
}

void RowVectorizer::emitReduction(ArrayRef<Value> outer, Value from, Value split, Value to, bool vectorizable) {
  // Reduction: lanes start from the first `lanes` elements' neutral value, so the cell's value enters the tail only.
  SmallVector<Value> outputs, scalars;
  SmallVector<SmallVector<Value>> places;
  SmallVector<Value> padded(outer);
  padded.push_back(from);
  for (OpOperand &output : op.getDpsInitsMutable()) {
    places.push_back(position(output, padded));
    outputs.push_back(output.get());
    scalars.push_back(memref::LoadOp::create(b, loc, output.get(), places.back()));
  }
  auto starts = [&](int64_t width) {
    SmallVector<Value> wide;
    for (auto [number, scalar] : llvm::enumerate(scalars)) {
      // Every combining op here is idempotent (max, min) or has a neutral element (add, mul).
      Operation *combine = combineOf(number);
      TypedAttr neutral = arith::getNeutralElement(combine).value_or(TypedAttr());
      Value start = neutral ? arith::ConstantOp::create(b, loc, neutral).getResult() : scalar;
      wide.push_back(widen(start, width));
    }
    return wide;
  };
  if (vectorizable) {
    SmallVector<Value> wide = starts(lanes);
    Value rest = endOfVectors(from, to, chainCount * lanes);
    wide = hasExtremes() ? emitExtremes(outer, from, rest, wide) : emitChains(outer, from, rest, wide, lanes);
    emitSpan(outer, rest, split, lanes, wide);
    for (auto [number, vector] : llvm::enumerate(wide)) {
      Operation *combine = combineOf(number);
      // Halves are folded onto each other: log2(lanes) steps in a fixed order.
      Value folded = vector;
      for (int64_t width = lanes / 2; width >= 1; width /= 2) {
        Value low = vector::ExtractStridedSliceOp::create(b, loc, folded, {0}, {width}, {1});
        Value high = vector::ExtractStridedSliceOp::create(b, loc, folded, {width}, {width}, {1});
        folded = combineLike(combine, low, high);
      }
      scalars[number] = combineLike(combine, scalars[number], vector::ExtractOp::create(b, loc, folded, 0));
    }
  }
  if (!vectorizable && lanes > 1 && folds() &&
      getConstantIntValue(to).value_or(std::numeric_limits<int64_t>::max()) >= 2 * chainCount) {
    split = endOfVectors(from, to, chainCount);
    for (auto [number, folded] : llvm::enumerate(emitChains(outer, from, split, starts(1), 1)))
      scalars[number] = combineLike(combineOf(number), scalars[number], folded);
  }
  emitSpan(outer, split, to, 1, scalars);
  for (auto [number, scalar] : llvm::enumerate(scalars))
    memref::StoreOp::create(b, loc, scalar, outputs[number], places[number]);
}

} // namespace deepstride
