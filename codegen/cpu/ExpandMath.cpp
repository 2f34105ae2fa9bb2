// Replaces f32 exp, expm1, log, log1p, tanh, erf, sin, cos, asin, acos and atan by the polynomials of
// dialects/ds/ScalarFunctions.h, on scalars and vectors alike: a vector's element has the same bits as a scalar, and as
// a constant that the compiler folds. Functions that are one instruction become LLVM intrinsics here, because the
// conversion to libm that comes later would turn them into calls, one per lane. What neither covers is left to libm.
// Divisions of vectors of integers become those of floats.
//
// Greatest error in units in the last place over f32 arguments of all exponents, subnormal results included, against
// double precision: exp 1.1, expm1 1.4, log 0.9, log1p 1.5, tanh 1.4, erf 1.1, sin and cos 1.6, asin 1.4, acos 1.3,
// atan 1.4; of the logistic function, which is made of exp, 2.5. The case math_functions_are_accurate of
// test/integration/math_cases.py measures and asserts them, and the values at NaN, infinities and zeros.
#include "codegen/Passes.h"
#include "codegen/lower/IrScalars.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace deepstride {
#define GEN_PASS_DEF_EXPANDMATH
#include "codegen/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

using Function = Value (ScalarFunctions<IrScalars>::*)(Value);

template <typename Op> struct ExpandFunction : OpRewritePattern<Op> {
  /// With `known`, only where that is said of the argument.
  ExpandFunction(MLIRContext *context, Function function, const char *known = nullptr)
      : OpRewritePattern<Op>(context, /*benefit=*/known ? 2 : 1), function(function), known(known) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "the element type is not f32");
    if (known && !op->hasAttr(known))
      return rewriter.notifyMatchFailure(op, "nothing is known of its argument");
    if (op->hasAttr(IrScalars::libm))
      return rewriter.notifyMatchFailure(op, "the argument is beyond what is expanded");
    IrScalars emitter(rewriter, op.getLoc(), op.getType());
    ScalarFunctions functions(emitter);
    rewriter.replaceOp(op, (functions.*function)(op.getOperand()));
    return success();
  }
  Function function;
  const char *known;
};

template <typename Op, typename Intrinsic> struct UseInstruction : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<Intrinsic>(op, op.getType(), op->getOperands());
    return success();
  }
};

/// Vectors have no instruction that divides integers, but floats with more than twice the digits do: a quotient of
/// integers is never so close below a whole number that it would be rounded to it. Neither divisors of 0 nor quotients
/// beyond the type come here (ScalarFunctions::quotient).
template <typename Op, bool isUnsigned, bool wantsRemainder> struct DivideAsFloats : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    auto element = type ? dyn_cast<IntegerType>(type.getElementType()) : IntegerType();
    if (!element || element.getWidth() < 8 || element.getWidth() > 32)
      return rewriter.notifyMatchFailure(op, "no floats hold vectors of the type");
    if (matchPattern(op.getRhs(), m_Constant()))
      return rewriter.notifyMatchFailure(op, "a constant divisor becomes a product");
    Location loc = op.getLoc();
    bool isNarrow = element.getWidth() <= 16;
    VectorType real = type.clone(isNarrow ? Type(rewriter.getF32Type()) : Type(rewriter.getF64Type()));
    VectorType whole = type.clone(rewriter.getI32Type());
    auto toReal = [&](Value x) -> Value {
      if (isUnsigned)
        return arith::UIToFPOp::create(rewriter, loc, real, x);
      return arith::SIToFPOp::create(rewriter, loc, real, x);
    };
    Value quotient = arith::DivFOp::create(rewriter, loc, toReal(op.getLhs()), toReal(op.getRhs()));
    if (isUnsigned && !isNarrow)
      quotient = arith::FPToUIOp::create(rewriter, loc, whole, quotient);
    else
      quotient = arith::FPToSIOp::create(rewriter, loc, whole, quotient);
    if (isNarrow)
      quotient = arith::TruncIOp::create(rewriter, loc, type, quotient);
    if (wantsRemainder) {
      Value product = arith::MulIOp::create(rewriter, loc, quotient, op.getRhs());
      quotient = arith::SubIOp::create(rewriter, loc, op.getLhs(), product);
    }
    rewriter.replaceOp(op, quotient);
    return success();
  }
};

struct ExpandMath : deepstride::impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    RewritePatternSet polynomials(&getContext()), instructions(&getContext());
#define DS_POLYNOMIAL(kind, mathOp, function)                                                                          \
  polynomials.add<ExpandFunction<math::mathOp>>(&getContext(), &ScalarFunctions<IrScalars>::kind);
#define DS_INSTRUCTION(kind, mathOp, intrinsic, function)                                                              \
  instructions.add<UseInstruction<math::mathOp, LLVM::intrinsic>>(&getContext());
#include "dialects/ds/ScalarFunctions.def"
    polynomials.add<ExpandFunction<math::ExpOp>>(&getContext(), &ScalarFunctions<IrScalars>::expOfNonpositive,
                                                 IrScalars::nonpositive);
    polynomials.add<ExpandFunction<math::ExpOp>>(&getContext(), &ScalarFunctions<IrScalars>::gradualExpOfNonpositive,
                                                 IrScalars::gradual);
    polynomials.add<ExpandFunction<math::ErfcOp>>(&getContext(), &ScalarFunctions<IrScalars>::erfcOfSize,
                                                  IrScalars::nonnegative);
    instructions.add<UseInstruction<math::FmaOp, LLVM::FMAOp>, UseInstruction<math::CopySignOp, LLVM::CopySignOp>>(
        &getContext());
    instructions.add<DivideAsFloats<arith::DivSIOp, false, false>, DivideAsFloats<arith::DivUIOp, true, false>,
                     DivideAsFloats<arith::RemSIOp, false, true>, DivideAsFloats<arith::RemUIOp, true, true>>(
        &getContext());
    walkAndApplyPatterns(getOperation(), std::move(polynomials)); // these are made of instructions
    walkAndApplyPatterns(getOperation(), std::move(instructions));
  }
};

} // namespace
