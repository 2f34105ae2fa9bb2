#include "codegen/cpu/micro/MicroKernels.h"
#include "codegen/tile/Widen.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
class ByteDot : public VectorKernel {
public:
  using VectorKernel::VectorKernel;

  Value loadPanel(KernelBuilder &k, Value buffer, Value position) const override {
    return prepare(k, vector::LoadOp::create(k.b, k.loc, vectorOf(k, 8), buffer, position), panel);
  }

  Value loadRow(KernelBuilder &k, const Matrix &lhs, Value position, Value count, int64_t) const override {
    Value four = broadcastWord(k, lanes(), lhs.buffer, position, count);
    return prepare(k, vector::BitCastOp::create(k.b, k.loc, vectorOf(k, 8), four), left);
  }

protected:
  /// A vector of the accumulator's size with elements of `bits`.
  VectorType vectorOf(KernelBuilder &k, unsigned bits) const {
    return VectorType::get({lanes() * 32 / bits}, k.b.getIntegerType(bits));
  }
  Value call(KernelBuilder &k, StringRef instruction, ValueRange operands) const {
    return LLVM::CallIntrinsicOp::create(k.b, k.loc, accumulator, k.b.getStringAttr(instruction), operands)
        .getResult(0);
  }
  /// What multiplyAdd takes, of the bytes of one operand.
  virtual Value prepare(KernelBuilder &k, Value bytes, Type element) const = 0;
};

/// vpdpbusd: the unsigned bytes come first.
class FourDot : public ByteDot {
public:
  using ByteDot::ByteDot;

  StringRef arithmetic() const override { return "int8"; }

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    if (panel.isUnsignedInteger())
      std::swap(row, columns);
    return call(k, byteDotInstruction(lanes()), {sum, row, columns});
  }

protected:
  Value prepare(KernelBuilder &, Value bytes, Type) const override { return bytes; }
};

/// vpmaddubsw would saturate: bytes at even and at odd places become 16 bits each instead, and are multiplied in pairs.
class TwoPairDots : public ByteDot {
public:
  using ByteDot::ByteDot;

  static StringRef instructionFor(int64_t lanes) {
    return lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
           : lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
           : lanes == 4 ? "llvm.x86.sse2.pmadd.wd"
                        : StringRef();
  }

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    for (int64_t half = 0; half < 2; ++half)
      sum = arith::AddIOp::create(
          k.b, k.loc, sum, call(k, instructionFor(lanes()), {elementsAt(k, row, half), elementsAt(k, columns, half)}));
    return sum;
  }

  StringRef arithmetic() const override { return "int16"; }

  /// Bytes at even places, or at odd ones, in 16 bits.
  Value elementsAt(KernelBuilder &k, Value columns, int64_t index) const override {
    return vector::ExtractOp::create(k.b, k.loc, columns, index);
  }

protected:
  Value prepare(KernelBuilder &k, Value bytes, Type element) const override {
    auto words = vectorOf(k, 16);
    auto [even, odd] = bytesAsWords(k, bytes, element.isUnsignedInteger());
    auto both = VectorType::get({2, words.getDimSize(0)}, words.getElementType());
    Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(both));
    Value half = vector::InsertOp::create(k.b, k.loc, even, none, ArrayRef<int64_t>{0});
    return vector::InsertOp::create(k.b, k.loc, odd, half, ArrayRef<int64_t>{1});
  }
};
} // namespace

StringRef byteDotInstruction(int64_t lanes) {
  return lanes == 16  ? "llvm.x86.avx512.vpdpbusd.512"
         : lanes == 8 ? "llvm.x86.avx512.vpdpbusd.256"
         : lanes == 4 ? "llvm.x86.avx512.vpdpbusd.128"
                      : StringRef();
}

std::unique_ptr<MicroKernel> byteDotKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  if (byteDotInstruction(target.lanes).empty())
    return nullptr;
  return std::make_unique<FourDot>(accumulator, left, panel, result, /*interleave=*/4);
}

std::unique_ptr<MicroKernel> bytePairsKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  if (TwoPairDots::instructionFor(target.lanes).empty())
    return nullptr;
  return std::make_unique<TwoPairDots>(accumulator, left, panel, result, /*interleave=*/4);
}

} // namespace deepstride
