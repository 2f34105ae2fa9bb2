// Attention over block after block of keys (online softmax; Milakov and Gimelshein, arXiv:1805.02867): scratch holds
// the scores of one block, however many keys there are. A row keeps the greatest score so far and the sum of its
// exponentials; where a block raises the greatest, what was summed before shrinks by a factor, or is dropped. Blocks
// begin at fixed places, so that bits depend neither on threads nor on other rows.
#include "codegen/lower/AttentionLowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace deepstride {

/// So many keys have scores at a time, or a few more. Keys and values of so many, 64 features each, take half a level-2
/// cache.
static constexpr int64_t keysPerBlock = 1024;

KeyBlock AttentionRows::allKeys() { return {k.constant(0), k.index(key[2]), {}, {}, /*isOnly=*/true}; }

SizeExpr AttentionRows::keysAtOnce(int64_t step) const {
  int64_t most = (keysPerBlock + step - 1) / step * step;
  auto fixed = key[2].constant();
  return fixed ? SizeExpr(std::min(*fixed, most)) : SizeExpr(most);
}

void AttentionRows::forEachKeyBlock(const SizeExpr &keysAtOnce, llvm::function_ref<void(const KeyBlock &)> body) {
  if (keysAtOnce == key[2])
    return body(allKeys());
  Value all = k.index(key[2]), zero = k.constant(0), size = k.index(keysAtOnce);
  auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(k.b, k.loc, predicate, x, y);
  };
  // Keys that are one block need no sums of blocks before: rows of few keys take half as long again with them.
  auto branch = scf::IfOp::create(k.b, k.loc, compare(arith::CmpIPredicate::sle, all, size), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  body(allKeys());
  k.b.setInsertionPointToStart(branch.elseBlock());
  k.loop(zero, all, size, [&](Value begin) {
    Value end = k.minimum(k.add(begin, size), all);
    body({begin, end, compare(arith::CmpIPredicate::eq, begin, zero), compare(arith::CmpIPredicate::eq, end, all),
          /*isOnly=*/false});
  });
}

Value AttentionRows::within(const KeyBlock &keys, Value index) {
  if (keys.isOnly)
    return index;
  return arith::MinSIOp::create(k.b, k.loc, arith::MaxSIOp::create(k.b, k.loc, index, keys.begin), keys.end);
}

RunningSoftmax AttentionRows::noSoftmax() {
  return {neutralElement(k.b, k.loc, ds::ReduceKind::max, element), constant(k.b, 0)};
}

Value AttentionRows::shiftOf(Value greatest, const KeyBlock &keys) {
  if (keys.isOnly) // -inf less -inf is NaN, as the row is
    return greatest;
  Value none = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, greatest, noSoftmax().greatest);
  return arith::SelectOp::create(k.b, k.loc, none, constant(k.b, 0), greatest);
}

Value AttentionRows::factorOf(Value before, Value shift, const KeyBlock &keys) {
  if (keys.isOnly)
    return {};
  auto branch = scf::IfOp::create(k.b, k.loc, before.getType(), keys.isFirst, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(k.b, k.loc, constant(k.b, 0));
  k.b.setInsertionPointToStart(branch.elseBlock());
  Value factor = emitWeight(k.b, k.loc, arith::SubFOp::create(k.b, k.loc, before, shift));
  scf::YieldOp::create(k.b, k.loc, factor);
  return branch.getResult(0);
}

Value AttentionLowering::shrunk(Value old, Value factor) {
  if (auto vector = dyn_cast<VectorType>(old.getType()))
    factor = vector::BroadcastOp::create(k.b, k.loc, vector, factor);
  return arith::MulFOp::create(k.b, k.loc, old, factor);
}

Value AttentionLowering::isGone(Value factor) {
  return arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, factor, constant(k.b, 0));
}

Value AttentionRows::totalOf(const RunningSoftmax &softmax, bool isOnly) {
  if (isOnly)
    return divisorOf(softmax.sum);
  Value none = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, softmax.greatest, noSoftmax().greatest);
  Value nan = constant(k.b, std::numeric_limits<double>::quiet_NaN());
  return divisorOf(arith::SelectOp::create(k.b, k.loc, none, nan, softmax.sum));
}

Value AttentionRows::inverseOf(const RunningSoftmax &softmax, bool isOnly) {
  return arith::DivFOp::create(k.b, k.loc, constant(k.b, 1), totalOf(softmax, isOnly));
}

} // namespace deepstride
