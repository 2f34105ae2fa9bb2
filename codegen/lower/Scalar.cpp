// Elements between memory and arithmetic. What functions compute is in dialects/ds/ScalarFunctions.h.
#include "codegen/lower/Scalar.h"

#include "codegen/lower/IrScalars.h"
#include "codegen/lower/NarrowTypes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace deepstride {

Type storageType(Type element) {
  if (element.isInteger(1) || isNarrowFloat(element) || isNarrowInteger(element))
    return IntegerType::get(element.getContext(), 8);
  if (element.isBF16()) // as bits: LLVM promotes even copies of bf16 through a function that libgcc 12 lacks
    return IntegerType::get(element.getContext(), 16);
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
}

Type computeType(Type element) {
  if (element.isInteger(1))
    return element;
  if (element.isF16() || element.isBF16() || isNarrowFloat(element))
    return Float32Type::get(element.getContext());
  return storageType(element);
}

int64_t storageBytes(Type element) { return storageType(element).getIntOrFloatBitWidth() / 8; }

static Value integerConstant(OpBuilder &b, Location loc, Type type, int64_t value) {
  auto number = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  auto vector = dyn_cast<VectorType>(type);
  return arith::ConstantOp::create(b, loc,
                                   vector ? TypedAttr(DenseElementsAttr::get(vector, Attribute(number))) : number);
}

/// The type in the shape of a value: itself, or a vector of it.
static Type shapedLike(Value value, Type type) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return vector ? Type(vector.clone(type)) : type;
}

Value fromStorage(OpBuilder &b, Location loc, Value raw, Type element) {
  if (element.isInteger(1))
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, raw, integerConstant(b, loc, raw.getType(), 0));
  if (element.isF16())
    return arith::ExtFOp::create(b, loc, shapedLike(raw, computeType(element)), raw);
  if (element.isBF16()) { // the upper half of an f32: exact, and needs no library
    Type i32 = shapedLike(raw, b.getI32Type());
    Value bits = arith::ExtUIOp::create(b, loc, i32, raw);
    return arith::BitcastOp::create(b, loc, shapedLike(raw, b.getF32Type()),
                                    arith::ShLIOp::create(b, loc, bits, integerConstant(b, loc, i32, 16)));
  }
  if (isNarrowFloat(element))
    return decodeNarrowFloat(b, loc, raw, element);
  return raw;
}

/// The bits that a value was made of, where fromStorage widened them.
static Value storedBfloat(Value value) {
  auto floats = value.getDefiningOp<arith::BitcastOp>();
  auto shifted = floats ? floats.getIn().getDefiningOp<arith::ShLIOp>() : nullptr;
  auto widened = shifted ? shifted.getLhs().getDefiningOp<arith::ExtUIOp>() : nullptr;
  APInt by;
  bool isStored = widened && getElementTypeOrSelf(widened.getIn()).isInteger(16) &&
                  matchPattern(shifted.getRhs(), m_ConstantInt(&by)) && by == 16;
  return isStored ? widened.getIn() : Value();
}

Value toStorage(OpBuilder &b, Location loc, Value value, Type element) {
  if (element.isInteger(1))
    return arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  if (element.isF16())
    return arith::TruncFOp::create(b, loc, shapedLike(value, element), value);
  if (element.isBF16()) {
    if (Value stored = storedBfloat(value)) // what was rounded by a cast is not rounded again
      return stored;
    Value rounded = arith::TruncFOp::create(b, loc, shapedLike(value, element), value); // RoundBfloats.cpp
    return arith::BitcastOp::create(b, loc, shapedLike(value, b.getI16Type()), rounded);
  }
  if (isNarrowFloat(element))
    return encodeNarrowFloat(b, loc, value, element);
  return isNarrowInteger(element) ? wrapNarrowInteger(b, loc, value, element) : value;
}

Value scalarConstant(OpBuilder &b, Location loc, Type element, double value) {
  Type type = computeType(element);
  if (auto floating = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(floating, value));
  return integerConstant(b, loc, type, static_cast<int64_t>(value));
}

Value scalarConstant(OpBuilder &b, Location loc, Type element, Attribute value) {
  Type type = computeType(element);
  if (auto number = dyn_cast<FloatAttr>(value)) {
    APFloat wide = number.getValue();
    if (isNarrowFloat(element) && wide.isNaN()) // the conversion below makes infinity of float8e8m0's
      return arith::ConstantOp::create(
          b, loc, FloatAttr::get(type, APFloat::getNaN(cast<FloatType>(type).getFloatSemantics())));
    bool lost;
    wide.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    return arith::ConstantOp::create(b, loc, FloatAttr::get(type, wide));
  }
  APInt number = cast<IntegerAttr>(value).getValue();
  unsigned width = type.getIntOrFloatBitWidth();
  number = element.isUnsignedInteger() || element.isInteger(1) ? number.zextOrTrunc(width) : number.sextOrTrunc(width);
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(type, number));
}

/// What the kernel's types are was checked when it was taken up.
static ElementInfo infoOf(Type element) { return *ElementInfo::of(element); }

Value emitPointwise(OpBuilder &b, Location loc, Operation *op, ArrayRef<Value> operands, ArrayRef<Type> elements,
                    Type result) {
  IrScalars emitter(b, loc, operands.front().getType());
  SmallVector<ElementInfo> types;
  for (Type element : elements)
    types.push_back(infoOf(element));
  return *ScalarFunctions(emitter).pointwise(op, operands, types, infoOf(result));
}

Value emitUnary(OpBuilder &b, Location loc, ds::UnaryKind kind, Value x, Type element) {
  IrScalars emitter(b, loc, x.getType());
  return ScalarFunctions(emitter).unary(kind, x, infoOf(element));
}

Value emitBinary(OpBuilder &b, Location loc, ds::BinaryKind kind, Value x, Value y, Type element, Type exponent) {
  IrScalars emitter(b, loc, x.getType());
  return ScalarFunctions(emitter).binary(kind, x, y, infoOf(element), infoOf(exponent));
}

Value emitCast(OpBuilder &b, Location loc, Value x, Type from, Type to) {
  IrScalars emitter(b, loc, x.getType());
  return ScalarFunctions(emitter).cast(x, infoOf(from), infoOf(to));
}

Value emitWeight(OpBuilder &b, Location loc, Value difference) {
  auto op = math::ExpOp::create(b, loc, difference);
  op->setAttr(IrScalars::nonpositive, b.getUnitAttr());
  return op;
}

bool addsUp(ds::ReduceKind kind) {
  return kind != ds::ReduceKind::prod && kind != ds::ReduceKind::max && kind != ds::ReduceKind::min;
}

Value emitCombine(OpBuilder &b, Location loc, ds::ReduceKind kind, Value x, Value y, Type element) {
  IrScalars emitter(b, loc, x.getType());
  switch (kind) { // one op each, by which lanes can be combined
  case ds::ReduceKind::prod: return emitter.mul(x, y);
  case ds::ReduceKind::max: return emitter.max(x, y, infoOf(element).isUnsigned);
  case ds::ReduceKind::min: return emitter.min(x, y, infoOf(element).isUnsigned);
  default: return emitter.add(x, y);
  }
}

Value neutralElement(OpBuilder &b, Location loc, ds::ReduceKind kind, Type element) {
  Type type = computeType(element);
  bool isMax = kind == ds::ReduceKind::max;
  if (!isMax && kind != ds::ReduceKind::min)
    return scalarConstant(b, loc, element, kind == ds::ReduceKind::prod ? 1.0 : 0.0);
  if (auto floating = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        b, loc, FloatAttr::get(type, APFloat::getInf(floating.getFloatSemantics(), /*Negative=*/isMax)));
  unsigned width = type.getIntOrFloatBitWidth();
  bool isUnsigned = element.isUnsignedInteger() || width == 1;
  APInt value = isMax ? (isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width))
                      : (isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width));
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(type, value));
}

} // namespace deepstride
