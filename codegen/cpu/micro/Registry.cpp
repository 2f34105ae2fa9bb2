// Micro-kernels by the names that schedules use.
#include "codegen/cpu/micro/MicroKernels.h"
#include "codegen/tile/Gemm.h"

using namespace mlir;

namespace deepstride {

std::unique_ptr<MicroKernel> makeMicroKernel(const LoweringTarget &target, ds::ProductKernel kernel,
                                             const ds::ProductTypes &types, bool isPacked) {
  if (target.reference || target.lanes <= 1 || !ds::multiplies(kernel, types, isPacked))
    return nullptr;
  auto [left, right, result] = types;
  switch (kernel) {
  case ds::ProductKernel::codes: return dequantizeKernel(target, left, right, result);
  case ds::ProductKernel::bfloat_dot: return bfloatDotKernel(target, left, right, result);
  case ds::ProductKernel::bfloat_halves: return bfloatHalvesKernel(target, left, right, result);
  case ds::ProductKernel::bfloat_tiles: return amxBfloatKernel(target, left, right, result);
  case ds::ProductKernel::byte_tiles: return amxByteKernel(target, left, right, result);
  case ds::ProductKernel::byte_dot: return byteDotKernel(target, left, right, result);
  case ds::ProductKernel::byte_pairs: return bytePairsKernel(target, left, right, result);
  case ds::ProductKernel::pair_dot:
    return pairDotKernel(target, left, isPacked ? right : IntegerType::get(left.getContext(), 16), result);
  case ds::ProductKernel::multiply_add: {
    // Integers of other widths than the sum's would have to be extended: nothing packs such weights.
    bool isStreamed = isPacked && (isa<FloatType>(result) || computeType(right) == computeType(result));
    return multiplyAddKernel(target, left, isStreamed ? right : computeType(result), result);
  }
  }
  llvm_unreachable("all kernels handled");
}

FailureOr<std::unique_ptr<MicroKernel>> scheduledKernel(KernelBuilder &k, Operation *op, const ds::ProductTypes &types,
                                                        bool isPacked) {
  ds::ScheduleAttr schedule = ds::scheduleOf(op);
  if (!schedule || k.target.reference)
    return std::unique_ptr<MicroKernel>();
  auto micro = makeMicroKernel(k.target, schedule.getKernel(), types, isPacked);
  if (!micro)
    return op->emitOpError("is scheduled as ")
           << ds::stringifyProductKernel(schedule.getKernel()) << ", which does not multiply " << types.left << " by "
           << types.right << " in vectors of " << k.target.lanes << " floats";
  if (schedule.getColumns() % micro->lanes() != 0)
    return op->emitOpError("is scheduled in panels of ")
           << schedule.getColumns() << " columns, which are no whole vectors of " << micro->lanes();
  bool isSquares = llvm::isa<SquareKernel>(*micro);
  if (isSquares &&
      (schedule.getColumns() > SquareKernel::squaresPerRow * micro->lanes() || schedule.getSweep() > mostRowsPerSweep))
    return op->emitOpError("is scheduled in squares of more than ")
           << SquareKernel::squaresPerRow * micro->lanes() << " columns, or sweeps of more than " << mostRowsPerSweep
           << " rows";
  return micro;
}

} // namespace deepstride
