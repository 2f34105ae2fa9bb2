// Replaces f32 exp, log, tanh and erf by polynomials, on scalars and vectors alike: a vector's element has the same
// bits as a scalar. Functions that are one instruction become LLVM intrinsics here, because the conversion to libm that
// comes later would turn them into calls, one per lane. What neither covers is left to libm.
//
// Greatest error in units in the last place over f32 arguments of all exponents, subnormal results included, against
// double precision: exp 1.0, log 0.8, tanh 1.4, erf 1.0. The case math_functions_are_accurate of
// test/integration/math_cases.py measures and asserts them, and the values at NaN, infinities and zeros.
#include "codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace deepstride {
#define GEN_PASS_DEF_EXPANDMATH
#include "codegen/Passes.h.inc"
} // namespace deepstride

using namespace mlir;

namespace {

/// Arithmetic on one f32 or on a vector of them.
class Emitter {
public:
  Emitter(OpBuilder &b, Location loc, Type type) : b(b), loc(loc), type(type), bits(withElement(b.getI32Type())) {}

  Value exp(Value x);
  Value log(Value x);
  Value tanh(Value x);
  Value erf(Value x);

private:
  Type withElement(Type element) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value splat(Type of, Attribute value) {
    auto vector = dyn_cast<VectorType>(of);
    return arith::ConstantOp::create(
        b, loc, vector ? TypedAttr(DenseElementsAttr::get(vector, value)) : cast<TypedAttr>(value));
  }
  Value real(float value) { return splat(type, b.getF32FloatAttr(value)); }
  Value integer(int32_t value) { return splat(bits, b.getI32IntegerAttr(value)); }
  Value fma(Value x, Value y, Value z) { return LLVM::FMAOp::create(b, loc, type, x, y, z); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value abs(Value x) { return LLVM::FAbsOp::create(b, loc, type, x); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, loc, condition, x, y); }
  Value less(Value x, Value y) { return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y); }
  Value withSignOf(Value magnitude, Value sign) { return LLVM::CopySignOp::create(b, loc, type, magnitude, sign); }
  Value toBits(Value x) { return arith::BitcastOp::create(b, loc, bits, x); }
  Value fromBits(Value x) { return arith::BitcastOp::create(b, loc, type, x); }
  /// Horner's rule, highest coefficient first.
  Value polynomial(Value x, ArrayRef<float> coefficients) {
    Value sum = real(coefficients.front());
    for (float coefficient : coefficients.drop_front())
      sum = fma(sum, x, real(coefficient));
    return sum;
  }
  /// 2^n for an integer n in [-126, 127].
  Value powerOfTwo(Value n) {
    Value biased = arith::AddIOp::create(b, loc, n, integer(127));
    return fromBits(arith::ShLIOp::create(b, loc, biased, integer(23)));
  }

  OpBuilder &b;
  Location loc;
  Type type, bits;
};

// x = n log 2 + r with |r| <= log 2 / 2 (Cody and Waite), exp r by Cephes' polynomial. 2^n is applied in two factors,
// so that results may be subnormal. Selects by comparison keep NaN; nothing is converted to integers, which NaN could
// not.
Value Emitter::exp(Value x) {
  x = select(less(x, real(-104.0f)), real(-104.0f), x);
  x = select(less(real(89.0f), x), real(89.0f), x);
  Value magic = real(0x1.8p23f); // adding it rounds to an integer, which then fills the low bits
  Value shifted = fma(x, real(0x1.715476p+0f), magic);
  Value n = sub(shifted, magic);
  Value r = fma(n, real(-0x1.62e400p-1f), x);
  r = fma(n, real(-0x1.7f7d1cp-20f), r);
  Value p = polynomial(
      r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f});
  Value y = add(fma(p, mul(r, r), r), real(1.0f));
  Value whole = arith::SubIOp::create(b, loc, toBits(shifted), integer(0x4b400000));
  Value half = arith::ShRSIOp::create(b, loc, whole, integer(1));
  Value rest = arith::SubIOp::create(b, loc, whole, half);
  return mul(mul(y, powerOfTwo(half)), powerOfTwo(rest));
}

// x = 2^n m with m in [sqrt(1/2), sqrt(2)), log m by Cephes' polynomial in m - 1.
Value Emitter::log(Value x) {
  Value isSmall = less(x, real(0x1p-126f)); // subnormals get a normal exponent
  Value scaled = select(isSmall, mul(x, real(0x1p23f)), x);
  Value offset = arith::SubIOp::create(b, loc, toBits(scaled), integer(0x3f3504f3)); // sqrt(1/2)
  Value exponent = arith::ShRSIOp::create(b, loc, offset, integer(23));
  Value mantissa = arith::SubIOp::create(b, loc, toBits(scaled), arith::ShLIOp::create(b, loc, exponent, integer(23)));
  Value m = sub(fromBits(mantissa), real(1.0f));
  Value n = arith::SIToFPOp::create(b, loc, type, exponent);
  n = select(isSmall, sub(n, real(23.0f)), n);
  Value square = mul(m, m);
  Value p = polynomial(m, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                           -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  Value y = mul(mul(m, square), p);
  y = fma(n, real(-2.12194440e-4f), y);
  y = fma(square, real(-0.5f), y);
  Value result = fma(n, real(0.693359375f), add(m, y));
  // Infinity and NaN, then zero, then what is negative.
  Value infinity = real(std::numeric_limits<float>::infinity()), zero = real(0.0f);
  result = select(less(x, infinity), result, x);
  Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, zero);
  result = select(isZero, real(-std::numeric_limits<float>::infinity()), result);
  return select(less(x, zero), real(std::numeric_limits<float>::quiet_NaN()), result);
}

// An odd polynomial (Cephes) where 1 - 2 / (exp 2|x| + 1) would cancel.
Value Emitter::tanh(Value x) {
  Value magnitude = abs(x), square = mul(x, x);
  Value p = polynomial(
      square, {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f});
  Value near = fma(mul(p, square), x, x);
  Value power = exp(add(magnitude, magnitude));
  Value quotient = arith::DivFOp::create(b, loc, real(2.0f), add(power, real(1.0f)));
  Value far = withSignOf(sub(real(1.0f), quotient), x);
  return select(less(magnitude, real(0.625f)), near, far);
}

// An odd polynomial near zero, 1 - exp q(|x|) elsewhere; both minimax (N. Juffa).
Value Emitter::erf(Value x) {
  Value magnitude = abs(x), square = mul(x, x);
  Value p = polynomial(
      square, {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f});
  Value near = fma(p, x, x);
  // Beyond 4 the result is 1; the polynomial must not be asked there. NaN stays.
  Value t = select(less(real(4.0f), magnitude), real(4.0f), magnitude);
  Value q = polynomial(t, {-1.72853470e-5f, 3.83197126e-4f, -3.88396438e-3f, 2.42546219e-2f, -1.06777877e-1f,
                           -6.34846687e-1f, -1.28717512e-1f});
  Value far = withSignOf(sub(real(1.0f), exp(fma(q, t, LLVM::FNegOp::create(b, loc, type, t)))), x);
  return select(less(real(0.927734375f), magnitude), far, near);
}

template <typename Op> struct ExpandFunction : OpRewritePattern<Op> {
  using Function = Value (Emitter::*)(Value);
  ExpandFunction(MLIRContext *context, Function function) : OpRewritePattern<Op>(context), function(function) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "the element type is not f32");
    Emitter emitter(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, (emitter.*function)(op.getOperand()));
    return success();
  }
  Function function;
};

template <typename Op, typename Intrinsic> struct UseInstruction : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<Intrinsic>(op, op.getType(), op->getOperands());
    return success();
  }
};

struct ExpandMath : deepstride::impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandFunction<math::ExpOp>>(&getContext(), &Emitter::exp);
    patterns.add<ExpandFunction<math::LogOp>>(&getContext(), &Emitter::log);
    patterns.add<ExpandFunction<math::TanhOp>>(&getContext(), &Emitter::tanh);
    patterns.add<ExpandFunction<math::ErfOp>>(&getContext(), &Emitter::erf);
    patterns.add<UseInstruction<math::SqrtOp, LLVM::SqrtOp>, UseInstruction<math::AbsFOp, LLVM::FAbsOp>,
                 UseInstruction<math::FmaOp, LLVM::FMAOp>, UseInstruction<math::FloorOp, LLVM::FFloorOp>,
                 UseInstruction<math::CeilOp, LLVM::FCeilOp>, UseInstruction<math::RoundEvenOp, LLVM::RoundEvenOp>>(
        &getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
