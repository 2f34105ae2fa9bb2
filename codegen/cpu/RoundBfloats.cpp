// Rounds f32 to bf16, to nearest even. Below native BF16 LLVM would call a function that libgcc 12 lacks, and where
// there is an instruction, it takes subnormal numbers as 0: a vector that has one is rounded in integers, as all are
// elsewhere, so that an element has the same bits on every machine, and in a vector and in a tail.
//
//   arith.truncf %x : vector<16xf32> to vector<16xbf16>
// becomes, with the instruction,
//   scf.if (any lane of %x is subnormal) { arith.addi, ... } else { vcvtneps2bf16 }
#include "codegen/Passes.h"

#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace deepstride {
#define GEN_PASS_DEF_ROUNDBFLOATS
#include "codegen/Passes.h.inc"
} // namespace deepstride

using namespace mlir;

namespace {

Value roundInIntegers(OpBuilder &b, Location loc, Value x, Type result) {
  auto shaped = [&](Type type) -> Type {
    auto vector = dyn_cast<VectorType>(x.getType());
    return vector ? Type(vector.clone(type)) : type;
  };
  Type words = shaped(b.getI32Type());
  auto constant = [&](int32_t value) -> Value {
    auto number = b.getI32IntegerAttr(value);
    auto vector = dyn_cast<VectorType>(words);
    return arith::ConstantOp::create(b, loc,
                                     vector ? TypedAttr(DenseElementsAttr::get(vector, Attribute(number))) : number);
  };
  Value bits = arith::BitcastOp::create(b, loc, words, x), half = constant(16);
  Value odd = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, bits, half), constant(1));
  Value rounded = arith::AddIOp::create(b, loc, bits, arith::AddIOp::create(b, loc, odd, constant(0x7fff)));
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  Value quiet = arith::OrIOp::create(b, loc, bits, constant(0x400000));
  Value chosen = arith::SelectOp::create(b, loc, isNan, quiet, rounded);
  Value high = arith::TruncIOp::create(b, loc, shaped(b.getI16Type()), arith::ShRUIOp::create(b, loc, chosen, half));
  return arith::BitcastOp::create(b, loc, result, high);
}

struct RoundBfloat : OpRewritePattern<arith::TruncFOp> {
  RoundBfloat(MLIRContext *context, bool hasInstruction) : OpRewritePattern(context), hasInstruction(hasInstruction) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!getElementTypeOrSelf(op.getType()).isBF16() || !getElementTypeOrSelf(x.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "is not from f32 to bf16");
    Location loc = op.getLoc();
    auto vector = dyn_cast<VectorType>(x.getType());
    if (!hasInstruction || !vector || vector.getRank() != 1 || !llvm::is_contained({8, 16}, vector.getDimSize(0))) {
      rewriter.replaceOp(op, roundInIntegers(rewriter, loc, x, op.getType()));
      return success();
    }
    bool isFull = vector.getDimSize(0) == 16;
    auto call = [&](StringRef name, Type type, ValueRange operands) -> Value {
      return LLVM::CallIntrinsicOp::create(rewriter, loc, type, rewriter.getStringAttr(name), operands).getResult(0);
    };
    constexpr int32_t subnormal = 0x20;
    Value which = arith::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(subnormal));
    Value lanes = call(isFull ? "llvm.x86.avx512.fpclass.ps.512" : "llvm.x86.avx512.fpclass.ps.256",
                       vector.clone(rewriter.getI1Type()), {x, which});
    Value any = vector::ReductionOp::create(rewriter, loc, vector::CombiningKind::OR, lanes);
    auto branch = scf::IfOp::create(rewriter, loc, TypeRange{op.getType()}, any, /*withElseRegion=*/true);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(rewriter, loc, roundInIntegers(rewriter, loc, x, op.getType()));
    rewriter.setInsertionPointToStart(branch.elseBlock());
    StringRef name = isFull ? "llvm.x86.avx512bf16.cvtneps2bf16.512" : "llvm.x86.avx512bf16.cvtneps2bf16.256";
    scf::YieldOp::create(rewriter, loc, call(name, op.getType(), x));
    rewriter.replaceOp(op, branch.getResults());
    return success();
  }

  bool hasInstruction;
};

struct RoundBfloats : deepstride::impl::RoundBfloatsBase<RoundBfloats> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RoundBfloat>(&getContext(), instruction);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
