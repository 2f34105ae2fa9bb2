#include "codegen/cpu/micro/MicroKernels.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
class MultiplyAdd : public VectorKernel {
public:
  using VectorKernel::VectorKernel;

  Value loadPanel(KernelBuilder &k, Value buffer, Value position) const override {
    auto type = VectorType::get({lanes()}, storageType(panel));
    return fromStorage(k.b, k.loc, vector::LoadOp::create(k.b, k.loc, type, buffer, position), panel);
  }

  Value loadRow(KernelBuilder &k, const Matrix &lhs, Value position, Value, int64_t) const override {
    Value element = k.load(lhs.buffer, position, left);
    if (computeType(left) != accumulator.getElementType())
      element = emitCast(k.b, k.loc, element, left, result);
    return vector::BroadcastOp::create(k.b, k.loc, accumulator, element);
  }

  Value multiplyAdd(KernelBuilder &k, Value row, Value columns, Value sum) const override {
    if (isa<FloatType>(accumulator.getElementType()))
      return vector::FMAOp::create(k.b, k.loc, row, columns, sum);
    return arith::AddIOp::create(k.b, k.loc, sum, arith::MulIOp::create(k.b, k.loc, row, columns));
  }
};
} // namespace

std::unique_ptr<MicroKernel> multiplyAddKernel(const LoweringTarget &target, Type left, Type panel, Type result) {
  Type sum = computeType(result);
  auto accumulator = VectorType::get({target.lanes * 32 / sum.getIntOrFloatBitWidth()}, sum);
  return std::make_unique<MultiplyAdd>(accumulator, left, panel, result, /*interleave=*/1);
}

} // namespace deepstride
