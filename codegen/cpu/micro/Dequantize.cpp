// Weights in 8 and 4 bits under activations in f32: codes become floats in registers, and a float is multiplied and
// added as those of an f32 weight are.
#include "codegen/cpu/micro/MicroKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
class Dequantize : public VectorKernel {
public:
  using VectorKernel::VectorKernel;

  int64_t storedPerStep() const override { return 1; }
  int64_t parts() const override { return interleave; }

  Value loadPanel(KernelBuilder &k, Value buffer, Value position) const override {
    auto bytes = VectorType::get({lanes()}, k.b.getI8Type());
    Value stored = vector::LoadOp::create(k.b, k.loc, bytes, buffer, position);
    Value words = arith::ExtSIOp::create(k.b, k.loc, integers(k), stored);
    return interleave == 1 ? arith::SIToFPOp::create(k.b, k.loc, accumulator, words).getResult() : words;
  }

  Value loadRow(KernelBuilder &k, const Matrix &lhs, Value position, Value count, int64_t part) const override {
    if (count && part == 1) // of two elements one
      return arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(accumulator));
    Value place = part == 0 ? position : k.add(position, lhs.columnStride);
    return vector::BroadcastOp::create(k.b, k.loc, accumulator, k.load(lhs.buffer, place, left));
  }

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    return vector::FMAOp::create(k.b, k.loc, row, columns, sum);
  }

  Value subtract(KernelBuilder &k, Value columns, Value zeroPoints) const override {
    return arith::SubFOp::create(k.b, k.loc, columns, zeroPoints);
  }

  /// Of bytes, the floats of one half.
  Value elementsAt(KernelBuilder &k, Value bytes, int64_t index) const override {
    return index == 0 ? lowHalves(k, bytes) : highHalves(k, bytes);
  }

private:
  VectorType integers(KernelBuilder &k) const { return VectorType::get({lanes()}, k.b.getI32Type()); }
  Value words(KernelBuilder &k, int32_t value) const {
    return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(integers(k), value));
  }

  /// Sixteen numbers fill a vector of AVX-512: its permutation looks them up by the low four bits.
  Value lookUp(KernelBuilder &k, Value codes) const {
    SmallVector<float> numbers;
    for (int code = 0; code < 16; ++code)
      numbers.push_back(static_cast<float>(code < 8 ? code : code - 16));
    Value table = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(accumulator, ArrayRef<float>(numbers)));
    return LLVM::CallIntrinsicOp::create(k.b, k.loc, accumulator, k.b.getStringAttr("llvm.x86.avx512.permvar.sf.512"),
                                         ValueRange{table, codes})
        .getResult(0);
  }
  Value lowHalves(KernelBuilder &k, Value bytes) const {
    if (lanes() == 16)
      return lookUp(k, bytes);
    Value high = arith::ShLIOp::create(k.b, k.loc, bytes, words(k, 28));
    return arith::SIToFPOp::create(k.b, k.loc, accumulator, arith::ShRSIOp::create(k.b, k.loc, high, words(k, 28)));
  }
  Value highHalves(KernelBuilder &k, Value bytes) const {
    Value high = arith::ShRSIOp::create(k.b, k.loc, bytes, words(k, 4));
    return arith::SIToFPOp::create(k.b, k.loc, accumulator, high);
  }
};
} // namespace

std::unique_ptr<MicroKernel> dequantizeKernel(const LoweringTarget &target, Type left, Type codes, Type result) {
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  return std::make_unique<Dequantize>(accumulator, left, codes, result, codes.isInteger(4) ? 2 : 1);
}

} // namespace deepstride
