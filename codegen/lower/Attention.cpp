// The attention kernel: one grid item is one head of queries of one batch row. Scores, their softmax and the product
// with the values never leave scratch, which has room for a block of keys (AttentionKeys.cpp). Here are the form in
// plain loops and what the forms share; AttentionPanels.cpp has panels, AttentionQuery.cpp a single query.
#include "codegen/lower/AttentionLowering.h"
#include "codegen/lower/Rows.h"
#include "codegen/tile/Squares.h"
#include "dialects/ds/Reductions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

void AttentionLowering::emitPlain() {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Type type = computeType(element);
  Value one = k.constant(1), zero = k.constant(0), none = constant(b, 0);
  Value depth = k.index(q[3]), width = k.index(value[3]);
  SizeExpr atOnce = keysAtOnce(1);
  k.setGrid(q[0] * q[1] * q[2], 1);
  Value scores = k.scratchOf(type, atOnce), sums = k.scratchOf(type, value[3]), repeat = repeatOf();
  Value greatest = k.cell(type), total = k.cell(type);
  k.loop(k.begin, k.end, one, [&](Value item) {
    SmallVector<Value> at = k.delinearize(item, ArrayRef(q).take_front(3));
    Value group = k.divide(at[1], repeat);
    Matrix queries = headOf(queryView, at[0], at[1]), results = headOf(resultView, at[0], at[1]);
    Matrix keys = headOf(keyView, at[0], group), values = headOf(valueView, at[0], group);
    storeCell(noSoftmax().greatest, greatest);
    storeCell(none, total);
    forEachKeyBlock(atOnce, [&](const KeyBlock &block) {
      auto softmax = plainSoftmax(at, scores, block, {loadCell(greatest), loadCell(total)}, [&](Value column) {
        return plainSum(depth, [&](Value i) -> Value {
          Value x = k.load(queries.buffer, queries.at(k, at[2], i), stored);
          Value y = k.load(keys.buffer, keys.at(k, column, i), stored);
          return arith::MulFOp::create(b, loc, asMultiplied(x), asMultiplied(y));
        });
      });
      storeCell(softmax.greatest, greatest);
      storeCell(softmax.sum, total);
      Value count = k.sub(block.end, block.begin);
      if (dropout) {
        Value start = k.add(placeOf(at), block.begin);
        k.loop(zero, count, one, [&](Value column) {
          Value weight = memref::LoadOp::create(b, loc, scores, column);
          weight = arith::MulFOp::create(b, loc, weight, constant(b, dropoutScale()));
          Value kept = arith::SelectOp::create(b, loc, keeps(b, start, column), weight, none);
          memref::StoreOp::create(b, loc, kept, scores, column);
        });
      }
      k.loop(zero, width, one, [&](Value i) {
        Value weighted = plainSum(count, [&](Value column) -> Value {
          Value x = memref::LoadOp::create(b, loc, scores, column);
          Value y = k.load(values.buffer, values.at(k, k.add(block.begin, column), i), stored);
          return arith::MulFOp::create(b, loc, asMultiplied(x), asMultiplied(y));
        });
        memref::StoreOp::create(b, loc, addedTo(sums, i, softmax.factor, weighted, block), sums, i);
      });
    });
    Value divisor = totalOf({loadCell(greatest), loadCell(total)}, /*isOnly=*/atOnce == key[2]);
    if (dropout)
      divisor = unlessDropped(at, divisor);
    k.loop(zero, width, one, [&](Value i) {
      Value result = arith::DivFOp::create(b, loc, memref::LoadOp::create(b, loc, sums, i), divisor);
      k.store(rounded(orZero(result, divisor)), results.buffer, results.at(k, at[2], i), resultElement);
    });
    if (takesExtremes)
      emitRowExtremes(k, op->getResult(0), resultView, at);
  });
}

/// What is summed with weights behind a block of keys: of the block, and of those before, at a place of scratch.
Value AttentionLowering::addedTo(Value before, Value place, Value factor, Value sum, const KeyBlock &keys) {
  if (keys.isOnly)
    return sum;
  auto vector = dyn_cast<VectorType>(sum.getType());
  Value old = vector ? loadLanes(k, vector, before, place, {}) : memref::LoadOp::create(k.b, k.loc, before, place);
  Value both = arith::AddFOp::create(k.b, k.loc, shrunk(old, factor), sum);
  return arith::SelectOp::create(k.b, k.loc, isGone(factor), sum, both);
}

Value AttentionLowering::asMultiplied(Value x) {
  return op.getRounds() ? emitCast(k.b, k.loc, x, element, *op.getRounds()) : x;
}

/// The result as its kernel yields it.
Value AttentionLowering::rounded(Value result) {
  for (ds::CastOp cast : roundings)
    result = emitCast(k.b, k.loc, result, k.elementOf(cast.getInput()), k.elementOf(cast.getResult()));
  return result;
}

LogicalResult AttentionLowering::run() {
  Type narrow = op.getRounds().value_or(element);
  auto kernel = scheduledKernel(k, op, {narrow, narrow, element}, /*isPacked=*/op.getRounds().has_value());
  if (failed(kernel))
    return failure();
  micro = std::move(*kernel);
  if (micro && op.getRounds())
    k.setArithmetic(micro->arithmetic());
  bool isPanels = micro != nullptr;
  // An operand is read in place, or computed and put together in panels.
  auto viewOf = [&](Value value, View &view) {
    auto found = operandView(k, value);
    if (found)
      view = *found;
    return found.has_value();
  };
  auto isRead = [&](Value value, View &view, std::optional<JoinedHeads> &joined) {
    if (isPanels)
      joined = JoinedHeads::of(k, value);
    return joined || viewOf(value, view);
  };
  bool isReached = isRead(op.getKey(), keyView, joinedKeys) && isRead(op.getValue(), valueView, joinedValues);
  if (isPanels)
    queryRows = RowSource::of(k, op.getQuery());
  if (queryRows && queryRows->isStored())
    queryRows.reset();
  isReached = isReached && (queryRows || viewOf(op.getQuery(), queryView));
  auto result = deepstride::resultView(k, op->getResult(0));
  if (!isReached || !result || !result->axes[3].stride.isConstant(1))
    return op.emitOpError("shares a kernel with more than windows that strides reach, row ops and caches of its "
                          "operands, or its features are moved");
  auto isJoined = [&](Value value) {
    return (joinedKeys && joinedKeys->has(value)) || (joinedValues && joinedValues->has(value));
  };
  SmallVector<Value> results; // one, which resultView has found
  llvm::copy_if(k.yielded(), std::back_inserter(results), [&](Value value) {
    return !isJoined(value) && !(value.getDefiningOp() && ds::extremesOf(value.getDefiningOp()));
  });
  if (results.size() != 1)
    return op.emitOpError("shares a kernel that yields more than its result, its keys and its values");
  resultElement = k.elementOf(results.front());
  for (Operation *behind = results.front().getDefiningOp(); behind != op;
       behind = behind->getOperand(0).getDefiningOp())
    if (auto cast = dyn_cast<ds::CastOp>(behind))
      roundings.insert(roundings.begin(), cast);
  takesExtremes = llvm::any_of(
      k.yielded(), [](Value value) { return value.getDefiningOp() && ds::extremesOf(value.getDefiningOp()); });
  if (takesExtremes && (!roundings.empty() || stored != element))
    return op.emitOpError("shares a kernel with extremes of what it rounds");
  if (!roundings.empty() && stored != element)
    return op.emitOpError("shares a kernel with a cast of a result in less than 32 bits");
  if (failed(findMasks(op, 3)))
    return failure();
  prepareDropout();
  resultView = *result;
  SizeExpr scores = q[0] * q[1] * q[2] * key[2];
  k.setFlops(scores * (q[3] + value[3]) * SizeExpr(2) + scores * SizeExpr(5));
  if (isPanels && hasOneQuery())
    emitOneQuery();
  else if (isPanels)
    emitPanels();
  else
    emitPlain();
  return success();
}

LogicalResult lowerAttention(KernelBuilder &builder, ds::AttentionOp op) {
  return AttentionLowering(builder, op).run();
}

} // namespace deepstride
