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

  Value loadRow(KernelBuilder &k, const Matrix &lhs, Value position, Value count, int64_t) const override {
    return prepare(k, broadcastWord(k, lanes(), lhs.buffer, position, count));
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

/// Codes of 8 or 4 bits, which bf16 holds exactly. Panels have pairs of bytes along K, or two halves of one byte.
class CodePairs : public DotInstruction {
public:
  using DotInstruction::DotInstruction;

  int64_t storedPerStep() const override { return panel.isInteger(4) ? 1 : interleave; }

  Value loadPanel(KernelBuilder &k, Value buffer, Value position) const override {
    auto load = [&](int64_t count) -> Value {
      return vector::LoadOp::create(k.b, k.loc, VectorType::get({count}, k.b.getI8Type()), buffer, position);
    };
    return panel.isInteger(4) ? lookUp(k, load(lanes())) : convert(k, load(2 * lanes()));
  }

private:
  /// By f32, half of the bytes at a time.
  Value convert(KernelBuilder &k, Value bytes) const {
    SmallVector<Value> halves;
    for (int64_t first : {int64_t(0), lanes()}) {
      Value part = vector::ExtractStridedSliceOp::create(k.b, k.loc, bytes, ArrayRef<int64_t>{first},
                                                         ArrayRef<int64_t>{lanes()}, ArrayRef<int64_t>{1});
      Value integers = arith::ExtSIOp::create(k.b, k.loc, words(k), part);
      halves.push_back(arith::SIToFPOp::create(k.b, k.loc, accumulator, integers));
    }
    StringRef name = lanes() == 16 ? "llvm.x86.avx512bf16.cvtne2ps2bf16.512" : "llvm.x86.avx512bf16.cvtne2ps2bf16.256";
    return LLVM::CallIntrinsicOp::create(k.b, k.loc, VectorType::get({2 * lanes()}, k.b.getBF16Type()),
                                         k.b.getStringAttr(name), ValueRange{halves[1], halves[0]})
        .getResult(0);
  }

  /// The bits of bf16 lie in a table that a permutation reads by the low bits of 16: the low half of a byte stays
  /// there, the high half moves to those of the next 16. Bits above are ignored, those below read the table's other
  /// copies.
  Value lookUp(KernelBuilder &k, Value bytes) const {
    int64_t entries = 2 * lanes();
    auto halves = VectorType::get({entries}, k.b.getI16Type());
    SmallVector<int16_t> table;
    for (int64_t entry = 0; entry < entries; ++entry) {
      int64_t code = entry % 16;
      llvm::APFloat number(llvm::APFloat::BFloat(), 0);
      number.convertFromAPInt(llvm::APInt(8, static_cast<uint64_t>(code < 8 ? code : code - 16), /*isSigned=*/true),
                              /*IsSigned=*/true, llvm::APFloat::rmNearestTiesToEven);
      table.push_back(static_cast<int16_t>(number.bitcastToAPInt().getZExtValue()));
    }
    Value numbers = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(halves, ArrayRef<int16_t>(table)));
    Value twelve = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(words(k), int32_t(12)));
    Value low = arith::ExtUIOp::create(k.b, k.loc, words(k), bytes);
    Value both = arith::OrIOp::create(k.b, k.loc, low, arith::ShLIOp::create(k.b, k.loc, low, twelve));
    StringRef name = lanes() == 16 ? "llvm.x86.avx512.permvar.hi.512" : "llvm.x86.avx512.permvar.hi.256";
    Value found = LLVM::CallIntrinsicOp::create(
                      k.b, k.loc, halves, k.b.getStringAttr(name),
                      ValueRange{numbers, vector::BitCastOp::create(k.b, k.loc, halves, both).getResult()})
                      .getResult(0);
    return vector::BitCastOp::create(k.b, k.loc, VectorType::get({entries}, k.b.getBF16Type()), found);
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
  if (ds::isCode(panel))
    return std::make_unique<CodePairs>(accumulator, left, panel, result, /*interleave=*/2);
  return std::make_unique<DotInstruction>(accumulator, left, panel, result, /*interleave=*/2);
}

std::unique_ptr<MicroKernel> bfloatHalvesKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  return std::make_unique<WidenedHalves>(accumulator, left, panel, result, /*interleave=*/2);
}

} // namespace deepstride
