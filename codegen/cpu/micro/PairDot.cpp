#include "codegen/cpu/micro/MicroKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

/// The intrinsic of vpmaddwd for that many sums.
static StringRef instructionFor(int64_t lanes) {
  return lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
         : lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
         : lanes == 4 ? "llvm.x86.sse2.pmadd.wd"
                      : StringRef();
}

namespace {
class PairDot : public VectorKernel {
public:
  using VectorKernel::VectorKernel;

  StringRef arithmetic() const override { return "int16"; }

  Value loadPanel(KernelBuilder &k, Value buffer, Value position) const override {
    Value stored =
        vector::LoadOp::create(k.b, k.loc, VectorType::get({2 * lanes()}, storageType(panel)), buffer, position);
    if (panel.getIntOrFloatBitWidth() == 16)
      return stored;
    return panel.isUnsignedInteger() ? arith::ExtUIOp::create(k.b, k.loc, pairs(k), stored).getResult()
                                     : arith::ExtSIOp::create(k.b, k.loc, pairs(k), stored).getResult();
  }

  Value loadRow(KernelBuilder &k, const Matrix &lhs, Value position, Value count, int64_t) const override {
    Value two = broadcastWord(k, lanes(), lhs.buffer, position, count);
    return vector::BitCastOp::create(k.b, k.loc, pairs(k), two);
  }

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    Value sums = LLVM::CallIntrinsicOp::create(k.b, k.loc, accumulator, k.b.getStringAttr(instructionFor(lanes())),
                                               ValueRange{row, columns})
                     .getResult(0);
    return arith::AddIOp::create(k.b, k.loc, sum, sums);
  }

private:
  VectorType pairs(KernelBuilder &k) const { return VectorType::get({2 * lanes()}, k.b.getI16Type()); }
};
} // namespace

std::unique_ptr<MicroKernel> pairDotKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  if (instructionFor(target.lanes).empty())
    return nullptr;
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  return std::make_unique<PairDot>(accumulator, left, panel, result, /*interleave=*/2);
}

} // namespace deepstride
