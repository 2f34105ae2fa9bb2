// Which micro-kernel computes a product of which types.
#include "codegen/cpu/micro/MicroKernels.h"
#include "dialects/ds/PackedLayout.h"

using namespace mlir;

namespace deepstride {

/// What lies in memory as whole bytes and is computed with lane by lane.
static bool isPlain(Type element) {
  if (element.isF16() || element.isBF16() || element.isF32() || element.isF64())
    return true;
  auto integer = dyn_cast<IntegerType>(element);
  return integer && integer.getWidth() >= 8 && integer.getWidth() <= 64;
}

/// Whether squares are multiplied. For every number of rows: the bits of a row must not depend on it. Products of two
/// operands of run time pack a panel for few rows, and would have to pack these, too.
static bool usesSquares(const LoweringTarget &target, bool isPacked, bool hasInstructions) {
  return isPacked && hasInstructions && target.lanes == SquareKernel::lines &&
         target.panel <= SquareKernel::squaresPerRow * target.lanes;
}

std::unique_ptr<MicroKernel> microKernelFor(const LoweringTarget &target, Type left, Type right, Type result,
                                            bool isPacked) {
  if (!target.reference && target.lanes > 1 && isPacked && left.isF32() && result.isF32() && ds::isCode(right))
    return dequantizeKernel(target, left, right, result);
  if (target.reference || target.lanes <= 1 || !isPlain(left) || !isPlain(right) || !isPlain(result))
    return nullptr;
  Type i16 = IntegerType::get(left.getContext(), 16);
  if (left.isBF16() && right.isBF16() && result.isF32())
    return usesSquares(target, isPacked, target.bfloatTiles) ? amxBfloatKernel(target, left, right, result)
                                                             : bfloatDotKernel(target, left, right, result);
  int64_t interleave = ds::packedLayout(left, right, target.panel).interleave;
  if (interleave == 4 && result.isSignlessInteger(32) && usesSquares(target, isPacked, target.byteTiles))
    return amxByteKernel(target, left, right, result);
  if (interleave == 4 && result.isSignlessInteger(32))
    if (auto kernel = byteDotKernel(target, left, right, result))
      return kernel;
  if (interleave == 2 && result.isSignlessInteger(32))
    if (auto kernel = pairDotKernel(target, left, isPacked ? right : i16, result))
      return kernel;
  // Integers of other widths than the sum's would have to be extended: nothing packs such weights.
  bool isStreamed = isPacked && (isa<FloatType>(result) || computeType(right) == computeType(result));
  return multiplyAddKernel(target, left, isStreamed ? right : computeType(result), result);
}

} // namespace deepstride
