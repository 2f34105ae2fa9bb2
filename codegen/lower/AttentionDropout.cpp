// Dropout of the weights of an attention's softmax: a row of them is drawn where it is needed, from its place among all
// scores, so that forward and backward, whatever block or thread they are in, drop the same ones.
#include "codegen/lower/AttentionRows.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

void AttentionRows::prepareDropout() {
  if (!dropout)
    return;
  SmallVector<Value> numbers;
  for (Value value : dropout->random)
    numbers.push_back(k.load(k.bufferOf(value), k.constant(0), k.b.getI64Type()));
  dropout->words = std::make_unique<RandomWords>(k, numbers[0], numbers[1], numbers[2], numbers[3]);
}

Value AttentionRows::placeOf(ArrayRef<Value> row) {
  return k.mul(k.linearize(row, ArrayRef(q).take_front(3)), k.index(key[2]));
}

Value AttentionRows::keeps(OpBuilder &b, Value rowPlace, Value column) {
  Value place = arith::IndexCastOp::create(b, k.loc, b.getI64Type(), arith::AddIOp::create(b, k.loc, rowPlace, column));
  auto threshold = static_cast<int64_t>(std::llround(dropout->ratio * RandomWords::range));
  Value least = arith::ConstantOp::create(b, k.loc, b.getI64IntegerAttr(threshold));
  return arith::CmpIOp::create(b, k.loc, arith::CmpIPredicate::uge, dropout->words->at(b, k.loc, place), least);
}

/// A segment of whole vectors, so that no column is drawn alone.
static Segment inVectors(KernelBuilder &k, const Segment &segment, int64_t lanes) {
  Value count = k.mul(k.ceilDiv(k.sub(segment.end, segment.begin), lanes), k.constant(lanes));
  return {segment.begin, k.add(segment.begin, count), segment.inside};
}

void AttentionRows::dropRow(const View &scores, Value offset, ArrayRef<Value> row, const Segment &segment) {
  AffineMap all = AffineMap::getMultiDimIdentityMap(1, k.b.getContext());
  Value line = segmentOf(scores, offset, inVectors(k, segment, micro->lanes()));
  Value start = k.add(placeOf(row), segment.begin);
  linalg::GenericOp::create(k.b, k.loc, ValueRange{line}, ValueRange{line}, {all, all}, {utils::IteratorType::parallel},
                            [&](OpBuilder &body, Location loc, ValueRange v) {
                              Value kept = keeps(body, start, linalg::IndexOp::create(body, loc, 0));
                              Value scaled = arith::MulFOp::create(body, loc, v[0], constant(body, dropoutScale()));
                              Value result = arith::SelectOp::create(body, loc, kept, scaled, constant(body, 0));
                              linalg::YieldOp::create(body, loc, result);
                            });
}

Value AttentionRows::unlessDropped(ArrayRef<Value> row, Value number) {
  Value isNan = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::UNO, number, number);
  auto branch = scf::IfOp::create(k.b, k.loc, number.getType(), isNan, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(k.b, k.loc, number);
  k.b.setInsertionPointToStart(branch.thenBlock());
  Value anyKept = k.cell(k.b.getI1Type()), start = placeOf(row);
  storeCell(arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(false)), anyKept);
  k.loop(k.constant(0), k.index(key[2]), k.constant(1), [&](Value column) {
    storeCell(arith::OrIOp::create(k.b, k.loc, loadCell(anyKept), keeps(k.b, start, column)), anyKept);
  });
  Value left = arith::SelectOp::create(k.b, k.loc, loadCell(anyKept), number, constant(k.b, 1));
  scf::YieldOp::create(k.b, k.loc, left);
  return branch.getResult(0);
}

void AttentionRows::fillFactors(Value factors, ArrayRef<Value> row, const Segment &segment) {
  AffineMap all = AffineMap::getMultiDimIdentityMap(1, k.b.getContext());
  View lines{factors, 0, {Axis{key[2], 1, true, std::nullopt}}};
  Value line = segmentOf(lines, k.constant(0), inVectors(k, segment, micro->lanes()));
  Value start = k.add(placeOf(row), segment.begin);
  linalg::GenericOp::create(k.b, k.loc, ValueRange{}, ValueRange{line}, {all}, {utils::IteratorType::parallel},
                            [&](OpBuilder &body, Location loc, ValueRange) {
                              Value kept = keeps(body, start, linalg::IndexOp::create(body, loc, 0));
                              Value factor = arith::SelectOp::create(body, loc, kept, constant(body, dropoutScale()),
                                                                     constant(body, 0));
                              linalg::YieldOp::create(body, loc, factor);
                            });
}

void AttentionRows::dropLine(Value line, Value factors) {
  AffineMap all = AffineMap::getMultiDimIdentityMap(1, k.b.getContext());
  linalg::GenericOp::create(k.b, k.loc, ValueRange{line, factors}, ValueRange{line}, {all, all, all},
                            {utils::IteratorType::parallel}, [&](OpBuilder &body, Location loc, ValueRange v) {
                              linalg::YieldOp::create(body, loc, dropped(body, v[0], v[1]));
                            });
}

Value AttentionRows::dropped(OpBuilder &b, Value x, Value factor) {
  Value none = constant(b, 0);
  Value isKept = arith::CmpFOp::create(b, k.loc, arith::CmpFPredicate::ONE, factor, none);
  return arith::SelectOp::create(b, k.loc, isKept, arith::MulFOp::create(b, k.loc, x, factor), none);
}

} // namespace deepstride
