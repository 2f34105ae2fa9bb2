// Scalars as SSA values: the emitter by which ScalarFunctions writes the bodies of kernels, for single values and for
// vectors of them.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_IRSCALARS_H
#define DEEPSTRIDE_CODEGEN_LOWER_IRSCALARS_H

#include "dialects/ds/ScalarFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace deepstride {

class IrScalars {
public:
  using Value = mlir::Value;

  /// Values have the shape of `like`, a scalar type or a vector type.
  IrScalars(mlir::OpBuilder &b, mlir::Location loc, mlir::Type like)
      : b(b), loc(loc), vector(mlir::dyn_cast<mlir::VectorType>(like)) {}

  ScalarType typeOf(Value x);
  Value integer(ScalarType type, int64_t value);
  Value real(ScalarType type, double value);

  Value add(Value x, Value y) { return either<mlir::arith::AddFOp, mlir::arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return either<mlir::arith::SubFOp, mlir::arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return either<mlir::arith::MulFOp, mlir::arith::MulIOp>(x, y); }
  Value fma(Value x, Value y, Value z) { return mlir::math::FmaOp::create(b, loc, x, y, z); }
  Value negate(Value x) { return b.createOrFold<mlir::arith::NegFOp>(loc, x); }
  Value divide(Value x, Value y, bool isUnsigned) {
    return isUnsigned ? b.createOrFold<mlir::arith::DivUIOp>(loc, x, y)
                      : either<mlir::arith::DivFOp, mlir::arith::DivSIOp>(x, y);
  }
  Value remainder(Value x, Value y, bool isUnsigned) {
    return isUnsigned ? b.createOrFold<mlir::arith::RemUIOp>(loc, x, y)
                      : either<mlir::arith::RemFOp, mlir::arith::RemSIOp>(x, y);
  }
  Value max(Value x, Value y, bool isUnsigned) {
    return isUnsigned ? b.createOrFold<mlir::arith::MaxUIOp>(loc, x, y)
                      : either<mlir::arith::MaximumFOp, mlir::arith::MaxSIOp>(x, y);
  }
  Value min(Value x, Value y, bool isUnsigned) {
    return isUnsigned ? b.createOrFold<mlir::arith::MinUIOp>(loc, x, y)
                      : either<mlir::arith::MinimumFOp, mlir::arith::MinSIOp>(x, y);
  }
  Value power(Value x, Value y) { return mlir::math::PowFOp::create(b, loc, x, y); }
  Value copySign(Value magnitude, Value sign) { return mlir::math::CopySignOp::create(b, loc, magnitude, sign); }
  Value function(ds::UnaryKind kind, Value x);
  /// Branches around the calls, which are one for each lane; ExpandMath leaves functions with `libm` alone.
  Value libmUnless(Value condition, Value common, ds::UnaryKind kind, Value x);
  static constexpr const char *libm = "ds.libm";
  /// What is known of an argument, and makes its function shorter: erfc of one that is not negative, exp of one that is
  /// not positive, with subnormal results or with 0 in their place.
  static constexpr const char *nonnegative = "ds.nonnegative", *nonpositive = "ds.nonpositive",
                              *gradual = "ds.nonpositive_gradual";
  Value erfcOfSize(Value x);
  Value gradualExpOfNonpositive(Value x);

  Value bitAnd(Value x, Value y) { return b.createOrFold<mlir::arith::AndIOp>(loc, x, y); }
  Value bitOr(Value x, Value y) { return b.createOrFold<mlir::arith::OrIOp>(loc, x, y); }
  Value bitXor(Value x, Value y) { return b.createOrFold<mlir::arith::XOrIOp>(loc, x, y); }
  Value shiftLeft(Value x, Value y) { return b.createOrFold<mlir::arith::ShLIOp>(loc, x, y); }
  Value shiftRight(Value x, Value y) { return b.createOrFold<mlir::arith::ShRUIOp>(loc, x, y); }
  Value shiftRightSigned(Value x, Value y) { return b.createOrFold<mlir::arith::ShRSIOp>(loc, x, y); }
  Value compare(Compare how, Value x, Value y, bool isUnsigned);
  Value select(Value condition, Value x, Value y) {
    return b.createOrFold<mlir::arith::SelectOp>(loc, condition, x, y);
  }

  Value integerTo(Value x, ScalarType type, bool isUnsigned);
  Value integerToFloat(Value x, ScalarType type, bool isUnsigned);
  /// Of what the type holds.
  Value floatToInteger(Value x, ScalarType type) { return b.createOrFold<mlir::arith::FPToSIOp>(loc, shaped(type), x); }
  Value floatTo(Value x, ScalarType type);
  Value bitcast(Value x, ScalarType type) { return b.createOrFold<mlir::arith::BitcastOp>(loc, shaped(type), x); }
  /// Scalars only, as are the types that memory holds in another form.
  Value rounded(Value x, const ElementInfo &to);
  Value reinterpret(Value x, const ElementInfo &from, const ElementInfo &to);

private:
  template <typename FloatOp, typename IntegerOp> Value either(Value x, Value y) {
    return isFloat(typeOf(x)) ? b.createOrFold<FloatOp>(loc, x, y) : b.createOrFold<IntegerOp>(loc, x, y);
  }
  mlir::Type shaped(ScalarType type);
  Value splat(mlir::Type type, mlir::TypedAttr value);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::VectorType vector; // null for scalars
};

} // namespace deepstride

#endif
