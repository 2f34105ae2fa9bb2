#include "codegen/cpu/micro/MicroKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
/// Eight steps of K at a time: two vpmaddubsw, whose sums are added in 16 bits, and one vpmaddwd by ones for both.
class ByteQuads : public VectorKernel {
public:
  using VectorKernel::VectorKernel;

  /// The instructions for so many sums: bytes to 16 bits, and these to 32.
  static std::pair<StringRef, StringRef> instructionsFor(int64_t lanes) {
    if (lanes == 16)
      return {"llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx512.pmaddw.d.512"};
    if (lanes == 8)
      return {"llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"};
    return {}; // the least that we generate code for has no vpmaddubsw
  }

  StringRef arithmetic() const override { return "int8_pairs"; }

  /// With sixteen registers, sums leave room for a step's two vectors of each column and what is summed in 16 bits.
  int64_t tallest(int64_t vectors) const override { return lanes() == 16 ? 32 : std::max<int64_t>(8 / vectors, 1); }

  Value loadPanel(KernelBuilder &k, Value buffer, Value position) const override {
    Value four = vector::LoadOp::create(k.b, k.loc, bytes(k), buffer, position);
    Value next = k.add(position, k.constant(4 * lanes()));
    return both(k, four, vector::LoadOp::create(k.b, k.loc, bytes(k), buffer, next));
  }

  Value loadRow(KernelBuilder &k, const Matrix &lhs, Value position, Value, int64_t) const override {
    auto fourAt = [&](Value place) -> Value {
      return vector::BitCastOp::create(k.b, k.loc, bytes(k), broadcastWord(k, lanes(), lhs.buffer, place));
    };
    return both(k, fourAt(position), fourAt(k.add(position, k.constant(4))));
  }

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    std::pair<StringRef, StringRef> instructions = instructionsFor(lanes());
    auto words = VectorType::get({2 * lanes()}, k.b.getI16Type());
    auto call = [&](VectorType type, StringRef instruction, ValueRange operands) {
      return LLVM::CallIntrinsicOp::create(k.b, k.loc, type, k.b.getStringAttr(instruction), operands).getResult(0);
    };
    auto half = [&](int64_t index) {
      Value ofRow = vector::ExtractOp::create(k.b, k.loc, row, index);
      return call(words, instructions.first, {ofRow, vector::ExtractOp::create(k.b, k.loc, columns, index)});
    };
    Value four = arith::AddIOp::create(k.b, k.loc, half(0), half(1));
    Value ones = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(words, k.b.getI16IntegerAttr(1)));
    return arith::AddIOp::create(k.b, k.loc, sum, call(accumulator, instructions.second, {four, ones}));
  }

private:
  VectorType bytes(KernelBuilder &k) const { return VectorType::get({4 * lanes()}, k.b.getI8Type()); }
  /// Two vectors as one value, which is two registers.
  Value both(KernelBuilder &k, Value first, Value second) const {
    auto type = VectorType::get({2, 4 * lanes()}, k.b.getI8Type());
    Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
    Value half = vector::InsertOp::create(k.b, k.loc, first, none, ArrayRef<int64_t>{0});
    return vector::InsertOp::create(k.b, k.loc, second, half, ArrayRef<int64_t>{1});
  }
};
} // namespace

std::unique_ptr<MicroKernel> byteQuadsKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  if (ByteQuads::instructionsFor(target.lanes).first.empty())
    return nullptr;
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  return std::make_unique<ByteQuads>(accumulator, left, panel, result, /*interleave=*/8);
}

} // namespace deepstride
