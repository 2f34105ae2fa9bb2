#include "codegen/cpu/micro/MicroKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
/// Registers are named by number. LLVM knows nothing of what they hold, and moves none of the calls.
class AmxDot : public SquareKernel {
public:
  AmxDot(VectorType accumulator, Type left, Type panel, Type result, int64_t interleave, StringRef instruction,
         StringRef ceiling, std::unique_ptr<MicroKernel> single = nullptr)
      : SquareKernel(accumulator, left, panel, result, interleave), instruction(instruction), ceiling(ceiling),
        single(std::move(single)) {}

  StringRef arithmetic() const override { return ceiling; }

  /// A kernel configures once for all panels, as a rule: that takes as long as a dozen products.
  void configure(KernelBuilder &k, Value rows) const override {
    if (!configured) {
      configured = k.cell(k.b.getIndexType());
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointAfter(configured.getDefiningOp());
      memref::StoreOp::create(k.b, k.loc, k.constant(0), configured);
    }
    Value present = memref::LoadOp::create(k.b, k.loc, configured);
    Value isOther = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ne, present, rows);
    auto branch = scf::IfOp::create(k.b, k.loc, isOther);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    memref::StoreOp::create(k.b, k.loc, rows, configured);
    loadShapes(k, rows);
  }
  const VectorKernel *singleRow() const override { return llvm::cast_if_present<VectorKernel>(single.get()); }
  void release(KernelBuilder &k) const override { call(k, "llvm.x86.tilerelease", {}); }
  void clear(KernelBuilder &k, int64_t number) const override { call(k, "llvm.x86.tilezero", {tile(k, number)}); }
  void load(KernelBuilder &k, int64_t number, Value buffer, Value position, int64_t stride) const override {
    move(k, "llvm.x86.tileloadd64", number, buffer, position, stride);
  }
  void store(KernelBuilder &k, int64_t number, Value buffer, Value position, int64_t stride) const override {
    move(k, "llvm.x86.tilestored64", number, buffer, position, stride);
  }
  void multiplyAdd(KernelBuilder &k, int64_t sums) const override {
    call(k, instruction, {tile(k, sums), tile(k, ofRows), tile(k, ofPanel)});
  }

private:
  /// 64 bytes: the palette, then from 16 on the bytes of a line of each register in 16 bits, from 48 on its lines in 8.
  static void loadShapes(KernelBuilder &k, Value rows) {
    Value memory;
    {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(&k.function.front());
      memory = memref::AllocaOp::create(k.b, k.loc, MemRefType::get({lineBytes}, k.b.getI8Type()),
                                        k.b.getI64IntegerAttr(lineBytes));
    }
    auto bytes = VectorType::get({lineBytes}, k.b.getI8Type()), bits = VectorType::get({lineBytes}, k.b.getI1Type());
    SmallVector<int8_t> fixed(lineBytes, 0);
    SmallVector<bool> isRows(lineBytes, false);
    fixed[0] = 1;
    for (int64_t number = 0; number <= ofPanel; ++number) {
      fixed[16 + 2 * number] = lineBytes;
      fixed[48 + number] = lines;
      isRows[48 + number] = number != ofPanel;
    }
    Value shapes = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(bytes, ArrayRef<int8_t>(fixed)));
    Value given = arith::IndexCastOp::create(k.b, k.loc, k.b.getI8Type(), rows);
    shapes = arith::SelectOp::create(
        k.b, k.loc, arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(bits, ArrayRef<bool>(isRows))),
        vector::BroadcastOp::create(k.b, k.loc, bytes, given), shapes);
    vector::StoreOp::create(k.b, k.loc, shapes, memory, k.constant(0));
    call(k, "llvm.x86.ldtilecfg", {k.addressOf(memory, k.constant(0))});
  }
  static Value tile(KernelBuilder &k, int64_t number) {
    return LLVM::ConstantOp::create(k.b, k.loc, k.b.getI8IntegerAttr(static_cast<int8_t>(number)));
  }
  static void call(KernelBuilder &k, StringRef name, ValueRange operands) {
    LLVM::CallIntrinsicOp::create(k.b, k.loc, k.b.getStringAttr(name), operands);
  }
  static void move(KernelBuilder &k, StringRef name, int64_t number, Value buffer, Value position, int64_t stride) {
    auto element = cast<MemRefType>(buffer.getType()).getElementType();
    Value apart = LLVM::ConstantOp::create(k.b, k.loc, k.b.getI64IntegerAttr(stride * storageBytes(element)));
    call(k, name, {tile(k, number), k.addressOf(buffer, position), apart});
  }

  StringRef instruction, ceiling; // literals
  std::unique_ptr<MicroKernel> single;
  mutable Value configured; // for how many rows registers have shapes; of the kernel that is emitted
};
} // namespace

std::unique_ptr<MicroKernel> amxBfloatKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  if (target.lanes != SquareKernel::lines)
    return nullptr;
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  return std::make_unique<AmxDot>(accumulator, left, panel, result, /*interleave=*/2, "llvm.x86.tdpbf16ps", "amx_bf16");
}

/// Sums of bytes are exact: those of a single row may be computed by vectors, which read a panel faster.
std::unique_ptr<MicroKernel> amxByteKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  if (target.lanes != SquareKernel::lines)
    return nullptr;
  auto accumulator = VectorType::get({target.lanes}, computeType(result));
  StringRef instruction = left.isUnsignedInteger() ? "llvm.x86.tdpbusd" : "llvm.x86.tdpbsud";
  return std::make_unique<AmxDot>(accumulator, left, panel, result, /*interleave=*/4, instruction, "amx_int8",
                                  byteDotKernel(target, left, panel, result));
}

} // namespace deepstride
