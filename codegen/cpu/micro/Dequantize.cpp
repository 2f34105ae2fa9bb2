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

  Value loadPanel(KernelBuilder &k, Value buffer, Value position) const override {
    auto bytes = VectorType::get({lanes()}, k.b.getI8Type());
    Value stored = vector::LoadOp::create(k.b, k.loc, bytes, buffer, position);
    Value words = arith::ExtSIOp::create(k.b, k.loc, integers(k), stored);
    if (interleave == 1)
      return arith::SIToFPOp::create(k.b, k.loc, accumulator, words);
    return joined(k, lowHalves(k, words), highHalves(k, words));
  }

  Value loadRow(KernelBuilder &k, const Matrix &lhs, Value position, Value count) const override {
    auto broadcast = [&](Value element) { return vector::BroadcastOp::create(k.b, k.loc, accumulator, element); };
    Value first = broadcast(k.load(lhs.buffer, position, left));
    if (interleave == 1)
      return first;
    if (count)
      return joined(k, first, arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(accumulator)));
    return joined(k, first, broadcast(k.load(lhs.buffer, k.add(position, lhs.columnStride), left)));
  }

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    for (int64_t i = 0; i < interleave; ++i)
      sum = vector::FMAOp::create(k.b, k.loc, elementsAt(k, row, i), elementsAt(k, columns, i), sum);
    return sum;
  }

  Value subtract(KernelBuilder &k, Value columns, Value zeroPoints) const override {
    auto less = [&](int64_t i) -> Value {
      return arith::SubFOp::create(k.b, k.loc, elementsAt(k, columns, i), zeroPoints);
    };
    return interleave == 1 ? less(0) : joined(k, less(0), less(1));
  }

  Value elementsAt(KernelBuilder &k, Value columns, int64_t index) const override {
    return interleave == 1 ? columns : vector::ExtractOp::create(k.b, k.loc, columns, index).getResult();
  }

private:
  VectorType integers(KernelBuilder &k) const { return VectorType::get({lanes()}, k.b.getI32Type()); }
  Value words(KernelBuilder &k, int32_t value) const {
    return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(integers(k), value));
  }

  /// Two vectors as the elements of a step along K; both stay in registers of their own.
  Value joined(KernelBuilder &k, Value first, Value second) const {
    auto type = VectorType::get({2, lanes()}, accumulator.getElementType());
    Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
    Value half = vector::InsertOp::create(k.b, k.loc, first, none, ArrayRef<int64_t>{0});
    return vector::InsertOp::create(k.b, k.loc, second, half, ArrayRef<int64_t>{1});
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
