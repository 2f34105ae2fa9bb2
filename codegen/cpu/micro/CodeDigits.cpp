// Weights in 8 and 4 bits under activations in f32, by integers: three digits of a row meet codes that stay bytes, so
// that a step of K costs a vector of columns three quarters of an instruction, and no code is converted.
#include "codegen/cpu/micro/MicroKernels.h"
#include "codegen/tile/RowDigits.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
class CodeDigits : public VectorKernel {
public:
  using VectorKernel::VectorKernel;

  int64_t storedPerStep() const override { return 4; }
  int64_t parts() const override { return interleave / 4; }
  StringRef arithmetic() const override { return "int8_digits"; }
  int64_t digits() const override { return rowDigits; }
  int32_t codeBias() const override { return isHalfBytes() ? 8 : 128; }

  /// Sums of three digits beside what is loaded and taken apart.
  int64_t tallest(int64_t vectors) const override {
    int64_t registers = lanes() == 16 ? 32 : 16;
    return std::max<int64_t>((registers - 2 - vectors) / (rowDigits * vectors), 1);
  }

  Value loadPanel(KernelBuilder &k, Value buffer, Value position) const override {
    Value stored = vector::LoadOp::create(k.b, k.loc, bytes(k), buffer, position);
    return isHalfBytes() ? stored : biased(k, stored).getResult();
  }

  Value loadRow(KernelBuilder &k, const Matrix &lhs, Value position, Value, int64_t part) const override {
    Value place = part == 0 ? position : k.add(position, k.constant(4 * part));
    return vector::BitCastOp::create(k.b, k.loc, bytes(k), broadcastWord(k, lanes(), lhs.buffer, place));
  }

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    return LLVM::CallIntrinsicOp::create(k.b, k.loc, accumulator, k.b.getStringAttr(byteDotInstruction(lanes())),
                                         ValueRange{sum, columns, row})
        .getResult(0);
  }

  /// The low halves of bytes, or the high ones. Bits that cross bytes in the shift are cut off.
  Value elementsAt(KernelBuilder &k, Value stored, int64_t index) const override {
    if (index > 0) {
      Value words = vector::BitCastOp::create(k.b, k.loc, accumulator, stored);
      Value four = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(accumulator, int32_t(4)));
      stored = vector::BitCastOp::create(k.b, k.loc, bytes(k), arith::ShRUIOp::create(k.b, k.loc, words, four));
    }
    return arith::AndIOp::create(k.b, k.loc, biased(k, stored), splat(k, 15));
  }

private:
  bool isHalfBytes() const { return panel.isInteger(4); }
  VectorType bytes(KernelBuilder &k) const { return VectorType::get({4 * lanes()}, k.b.getI8Type()); }
  Value splat(KernelBuilder &k, int value) const {
    return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(bytes(k), static_cast<int8_t>(value)));
  }
  /// The sign bit turned: a code more the bias.
  arith::XOrIOp biased(KernelBuilder &k, Value codes) const {
    return arith::XOrIOp::create(k.b, k.loc, codes, splat(k, codeBias()));
  }
};
} // namespace

std::unique_ptr<MicroKernel> digitsKernel(const LoweringTarget &target, Type left, Type codes, Type result) {
  if (target.lanes < 8 || byteDotInstruction(target.lanes).empty())
    return nullptr;
  auto accumulator = VectorType::get({target.lanes}, IntegerType::get(left.getContext(), 32));
  return std::make_unique<CodeDigits>(accumulator, left, codes, result, codes.isInteger(4) ? 8 : 4);
}

} // namespace deepstride
