// The greatest and the least by comparisons, and what tells whether they are exact.
#include "codegen/cpu/Extremes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

using Predicate = arith::CmpFPredicate;

/// How what is further out compares with what is not.
static Predicate beyond(Operation *combine) {
  return isa<arith::MaximumFOp>(combine) ? Predicate::OGT : Predicate::OLT;
}

static Value any(OpBuilder &b, Location loc, Value flags) {
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, flags);
}

static Value zeroOf(OpBuilder &b, Location loc, Type type) {
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

bool isExtreme(Operation *combine) { return isa<arith::MaximumFOp, arith::MinimumFOp>(combine); }

Value compareExtreme(OpBuilder &b, Operation *combine, Value extreme, Value x) {
  Location loc = combine->getLoc();
  Value isBeyond = arith::CmpFOp::create(b, loc, beyond(combine), x, extreme);
  return arith::SelectOp::create(b, loc, isBeyond, x, extreme);
}

Value flagNaN(OpBuilder &b, Location loc, Value flags, Value x, Value y) {
  auto type = cast<VectorType>(x.getType());
  auto element = cast<FloatType>(type.getElementType());
  auto nan = FloatAttr::get(element, APFloat::getNaN(element.getFloatSemantics()));
  Value flag = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, nan));
  Value has = arith::CmpFOp::create(b, loc, Predicate::UNO, x, y);
  return arith::SelectOp::create(b, loc, has, flag, flags);
}

Value anyNaN(OpBuilder &b, Location loc, Value vector) {
  return any(b, loc, arith::CmpFOp::create(b, loc, Predicate::UNO, vector, vector));
}

Value isZeroExtreme(OpBuilder &b, Operation *combine, Value lanes) {
  Location loc = combine->getLoc();
  Value zero = zeroOf(b, loc, lanes.getType());
  Value some = any(b, loc, arith::CmpFOp::create(b, loc, Predicate::OEQ, lanes, zero));
  Value further = any(b, loc, arith::CmpFOp::create(b, loc, beyond(combine), lanes, zero));
  Value none = arith::XOrIOp::create(b, loc, further, arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1));
  return arith::AndIOp::create(b, loc, some, none);
}

} // namespace deepstride
