// Micro-kernels by the names that schedules use: the rows of dialects/ds/ProductKernels.def.
#include "codegen/cpu/micro/MicroKernels.h"
#include "codegen/tile/Gemm.h"

using namespace mlir;

namespace deepstride {

/// What a panel of the right operand holds. That of a weight is what the package has, as a rule; others are converted
/// while they are packed.
static Type panelType(ds::ProductKernel kernel, const ds::ProductTypes &types, bool isPacked) {
  Type right = types.right;
  if (kernel == ds::ProductKernel::pair_dot)
    return isPacked ? right : IntegerType::get(right.getContext(), 16);
  if (kernel != ds::ProductKernel::multiply_add)
    return right;
  // Integers of other widths than the sum's would have to be extended: nothing packs such weights.
  bool isStreamed = isPacked && (isa<FloatType>(types.result) || computeType(right) == computeType(types.result));
  return isStreamed ? right : computeType(types.result);
}

std::unique_ptr<MicroKernel> makeMicroKernel(const LoweringTarget &target, ds::ProductKernel kernel,
                                             const ds::ProductTypes &types, bool isPacked) {
  if (target.reference || target.lanes <= 1 || !ds::multiplies(kernel, types, isPacked))
    return nullptr;
  Type panel = panelType(kernel, types, isPacked);
  switch (kernel) {
#define DS_PRODUCT_KERNEL(name, needs, rate, interleave, operands, maker)                                              \
  case ds::ProductKernel::name: return maker(target, types.left, panel, types.result);
#include "dialects/ds/ProductKernels.def"
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
