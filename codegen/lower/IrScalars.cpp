// The steps of scalar functions as arith and math ops. Steps on constants fold as they are written, and functions of
// constants take the value that the compiler itself computes: a fold of the math dialect would be libm's.
#include "codegen/lower/IrScalars.h"

#include "codegen/lower/Scalar.h"
#include "dialects/ds/HostScalars.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace deepstride {

static Type scalarType(MLIRContext *context, ScalarType type) {
  if (type == ScalarType::f32)
    return Float32Type::get(context);
  return type == ScalarType::f64 ? Type(Float64Type::get(context)) : IntegerType::get(context, widthOf(type));
}

ScalarType IrScalars::typeOf(Value x) { return ElementInfo::of(getElementTypeOrSelf(x.getType()))->compute; }

Type IrScalars::shaped(ScalarType type) {
  Type scalar = scalarType(b.getContext(), type);
  return vector ? Type(vector.clone(scalar)) : scalar;
}

Value IrScalars::splat(Type type, TypedAttr value) {
  return arith::ConstantOp::create(b, loc, vector ? DenseElementsAttr::get(cast<VectorType>(type), value) : value);
}

Value IrScalars::integer(ScalarType type, int64_t value) {
  APInt bits(widthOf(type), static_cast<uint64_t>(value), /*isSigned=*/true, /*implicitTrunc=*/true);
  return splat(shaped(type), IntegerAttr::get(scalarType(b.getContext(), type), bits));
}

Value IrScalars::real(ScalarType type, double value) {
  return splat(shaped(type), FloatAttr::get(scalarType(b.getContext(), type), value));
}

Value IrScalars::function(ds::UnaryKind kind, Value x) {
  if (APFloat known(0.0); matchPattern(x, m_ConstantFloat(&known))) {
    HostScalars host;
    bool isSingle = typeOf(x) == ScalarType::f32;
    HostScalar value = host.real(typeOf(x), isSingle ? known.convertToFloat() : known.convertToDouble());
    value = host.function(kind, value);
    return real(typeOf(x), isSingle ? value.f32 : value.f64);
  }
  switch (kind) {
#define DS_INSTRUCTION(kind, mathOp, intrinsic, function)                                                              \
  case ds::UnaryKind::kind: return math::mathOp::create(b, loc, x);
#define DS_POLYNOMIAL(kind, mathOp, function)                                                                          \
  case ds::UnaryKind::kind: return math::mathOp::create(b, loc, x);
#define DS_LIBM(kind, mathOp, function)                                                                                \
  case ds::UnaryKind::kind: return math::mathOp::create(b, loc, x);
#include "dialects/ds/ScalarFunctions.def"
  default: llvm_unreachable("built from other functions");
  }
}

Value IrScalars::erfcOfSize(Value x) {
  auto op = math::ErfcOp::create(b, loc, x);
  op->setAttr(nonnegative, b.getUnitAttr());
  return op;
}

Value IrScalars::gradualExpOfNonpositive(Value x) {
  auto op = math::ExpOp::create(b, loc, x);
  op->setAttr(gradual, b.getUnitAttr());
  return op;
}

Value IrScalars::libmUnless(Value condition, Value common, ds::UnaryKind kind, Value x) {
  Value all =
      vector ? vector::ReductionOp::create(b, loc, vector::CombiningKind::AND, condition).getResult() : condition;
  auto branch = scf::IfOp::create(b, loc, TypeRange{common.getType()}, all, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, common);
  b.setInsertionPointToStart(branch.elseBlock());
  Value called = kind == ds::UnaryKind::sin ? math::SinOp::create(b, loc, x).getResult()
                                            : math::CosOp::create(b, loc, x).getResult();
  called.getDefiningOp()->setAttr(libm, b.getUnitAttr());
  scf::YieldOp::create(b, loc, select(condition, common, called));
  return branch.getResult(0);
}

Value IrScalars::compare(Compare how, Value x, Value y, bool isUnsigned) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  static constexpr F floats[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE, F::UNO};
  static constexpr I signedOnes[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  static constexpr I unsignedOnes[] = {I::eq, I::ne, I::ult, I::ule, I::ugt, I::uge};
  auto which = static_cast<unsigned>(how);
  if (isFloat(typeOf(x)))
    return b.createOrFold<arith::CmpFOp>(loc, floats[which], x, y);
  return b.createOrFold<arith::CmpIOp>(loc, isUnsigned ? unsignedOnes[which] : signedOnes[which], x, y);
}

Value IrScalars::integerTo(Value x, ScalarType type, bool isUnsigned) {
  unsigned from = widthOf(typeOf(x)), to = widthOf(type);
  if (from == to)
    return x;
  if (from > to)
    return b.createOrFold<arith::TruncIOp>(loc, shaped(type), x);
  return isUnsigned ? b.createOrFold<arith::ExtUIOp>(loc, shaped(type), x)
                    : b.createOrFold<arith::ExtSIOp>(loc, shaped(type), x);
}

Value IrScalars::integerToFloat(Value x, ScalarType type, bool isUnsigned) {
  return isUnsigned ? b.createOrFold<arith::UIToFPOp>(loc, shaped(type), x)
                    : b.createOrFold<arith::SIToFPOp>(loc, shaped(type), x);
}

Value IrScalars::floatTo(Value x, ScalarType type) {
  if (typeOf(x) == type)
    return x;
  if (type == ScalarType::f64)
    return b.createOrFold<arith::ExtFOp>(loc, shaped(type), x);
  // Canonicalization converts an integer straight to f32, which rounds once what two casts round twice. It leaves
  // roundings alone that name their direction.
  Operation *from = x.getDefiningOp();
  if (isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(from) &&
      getElementTypeOrSelf(from->getOperand(0).getType()).isInteger(64))
    return arith::TruncFOp::create(b, loc, shaped(type), x,
                                   arith::RoundingModeAttr::get(b.getContext(), arith::RoundingMode::to_nearest_even),
                                   nullptr);
  return b.createOrFold<arith::TruncFOp>(loc, shaped(type), x);
}

Value IrScalars::rounded(Value x, const ElementInfo &to) {
  return fromStorage(b, loc, toStorage(b, loc, x, to.type), to.type);
}

Value IrScalars::reinterpret(Value x, const ElementInfo &from, const ElementInfo &to) {
  Value raw = toStorage(b, loc, x, from.type);
  if (raw.getType() != storageType(to.type))
    raw = arith::BitcastOp::create(b, loc, storageType(to.type), raw);
  return fromStorage(b, loc, raw, to.type);
}

} // namespace deepstride
