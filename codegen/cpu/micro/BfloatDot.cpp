#include "codegen/cpu/micro/MicroKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
class BfloatPairs : public VectorKernel {
public:
  using VectorKernel::VectorKernel;

  Value loadPanel(KernelBuilder &k, Value buffer, Value position) const override {
    auto type = VectorType::get({2 * lanes()}, storageType(panel));
    return prepare(
        k, vector::BitCastOp::create(k.b, k.loc, words(k), vector::LoadOp::create(k.b, k.loc, type, buffer, position)));
  }

  Value loadRow(KernelBuilder &k, const Matrix &lhs, Value position, Value count) const override {
    Type stored = storageType(left), i32 = k.b.getI32Type();
    Value bits;
    if (count) { // one of two
      Value element = memref::LoadOp::create(k.b, k.loc, lhs.buffer, position);
      bits = arith::ExtUIOp::create(k.b, k.loc, i32, element);
    } else {
      Value two = vector::LoadOp::create(k.b, k.loc, VectorType::get({2}, stored), lhs.buffer, position);
      Value one = vector::BitCastOp::create(k.b, k.loc, VectorType::get({1}, i32), two);
      bits = vector::ExtractOp::create(k.b, k.loc, one, ArrayRef<int64_t>{0});
    }
    return prepare(k, vector::BroadcastOp::create(k.b, k.loc, words(k), bits));
  }

protected:
  VectorType words(KernelBuilder &k) const { return VectorType::get({lanes()}, k.b.getI32Type()); }
  /// What multiplyAdd takes, of pairs in 32 bits.
  virtual Value prepare(KernelBuilder &k, Value pairs) const = 0;
};

class DotInstruction : public BfloatPairs {
public:
  using BfloatPairs::BfloatPairs;

  StringRef arithmetic() const override { return "bf16"; }

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    StringRef name = lanes() == 16 ? "llvm.x86.avx512bf16.dpbf16ps.512" : "llvm.x86.avx512bf16.dpbf16ps.256";
    return LLVM::CallIntrinsicOp::create(k.b, k.loc, accumulator, k.b.getStringAttr(name),
                                         ValueRange{sum, row, columns})
        .getResult(0);
  }

protected:
  Value prepare(KernelBuilder &k, Value pairs) const override {
    return vector::BitCastOp::create(k.b, k.loc, VectorType::get({2 * lanes()}, k.b.getBF16Type()), pairs);
  }
};

/// The bits of a bf16 are the upper half of the same number in f32.
class WidenedHalves : public BfloatPairs {
public:
  using BfloatPairs::BfloatPairs;

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    for (int64_t half = 0; half < 2; ++half)
      sum = vector::FMAOp::create(k.b, k.loc, vector::ExtractOp::create(k.b, k.loc, row, half),
                                  vector::ExtractOp::create(k.b, k.loc, columns, half), sum);
    return sum;
  }

  Value elementsAt(KernelBuilder &k, Value columns, int64_t index) const override {
    return vector::ExtractOp::create(k.b, k.loc, columns, index);
  }

protected:
  Value prepare(KernelBuilder &k, Value pairs) const override {
    auto constant = [&](int32_t value) -> Value {
      return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(words(k), value));
    };
    auto floats = [&](Value bits) -> Value { return vector::BitCastOp::create(k.b, k.loc, accumulator, bits); };
    Value first = floats(arith::ShLIOp::create(k.b, k.loc, pairs, constant(16)));
    Value second = floats(arith::AndIOp::create(k.b, k.loc, pairs, constant(static_cast<int32_t>(0xffff0000))));
    Value both = arith::ConstantOp::create(
        k.b, k.loc, k.b.getZeroAttr(VectorType::get({2, lanes()}, accumulator.getElementType())));
    both = vector::InsertOp::create(k.b, k.loc, first, both, ArrayRef<int64_t>{0});
    return vector::InsertOp::create(k.b, k.loc, second, both, ArrayRef<int64_t>{1});
  }
};
} // namespace

std::unique_ptr<MicroKernel> bfloatDotKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  if (target.lanes != 16 && target.lanes != 8)
    return nullptr;
  return std::make_unique<DotInstruction>(accumulator, left, panel, result, /*interleave=*/2);
}

std::unique_ptr<MicroKernel> bfloatHalvesKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  return std::make_unique<WidenedHalves>(accumulator, left, panel, result, /*interleave=*/2);
}

} // namespace deepstride
