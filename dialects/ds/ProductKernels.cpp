// What micro-kernels multiply, and the rows of their registry.
#include "dialects/ds/Schedule.h"

using namespace mlir;

namespace deepstride::ds {

/// What lies in memory as whole bytes and is computed with lane by lane.
static bool isPlain(Type element) {
  if (element.isF16() || element.isBF16() || element.isF32() || element.isF64())
    return true;
  auto integer = dyn_cast<IntegerType>(element);
  return integer && integer.getWidth() >= 8 && integer.getWidth() <= 64;
}

/// The columns `operands` of ProductKernels.def.
namespace operands {
static bool plain(const ProductTypes &types, bool) {
  return isPlain(types.left) && isPlain(types.right) && isPlain(types.result);
}
static bool floatsByCodes(const ProductTypes &types, bool isPacked) {
  return isPacked && (types.left.isF32() || types.left.isBF16()) && types.result.isF32() && isCode(types.right);
}
static bool digitsByCodes(const ProductTypes &types, bool isPacked) {
  return types.left.isF32() && floatsByCodes(types, isPacked);
}
static bool words(const ProductTypes &types, bool) {
  return types.left.isSignlessInteger(16) && isSummedWide(types.right) && !types.right.isUnsignedInteger(16) &&
         types.result.isSignlessInteger(32);
}
/// Unsigned by signed, either of them on the left.
static bool bytes(const ProductTypes &types, bool) {
  return types.left.isInteger(8) && types.right.isInteger(8) &&
         types.left.isUnsignedInteger() != types.right.isUnsignedInteger() && types.result.isSignlessInteger(32);
}
static bool unsignedBySigned(const ProductTypes &types, bool isPacked) {
  return isPacked && bytes(types, isPacked) && types.left.isUnsignedInteger();
}
static bool bfloats(const ProductTypes &types, bool) {
  return types.left.isBF16() && types.right.isBF16() && types.result.isF32();
}
/// bf16 holds every code.
static bool bfloatsOrCodes(const ProductTypes &types, bool isPacked) {
  if (isCode(types.right))
    return isPacked && types.left.isBF16() && types.result.isF32();
  return bfloats(types, isPacked);
}
} // namespace operands

static constexpr ProductKernelRow registry[] = {
#define DS_PRODUCT_KERNEL(name, needs, rate, interleave, types, maker)                                                 \
  {ProductKernel::name, KernelNeeds::needs, rate, interleave, operands::types},
#include "dialects/ds/ProductKernels.def"
};

ArrayRef<ProductKernelRow> productKernels() { return registry; }

const ProductKernelRow &rowOf(ProductKernel kernel) {
  return *llvm::find_if(registry, [&](const ProductKernelRow &row) { return row.kernel == kernel; });
}

bool multiplies(ProductKernel kernel, const ProductTypes &types, bool isPacked) {
  // Squares need a packed left operand, which only products with weights have.
  return (isPacked || !usesSquares(kernel)) && rowOf(kernel).multiplies(types, isPacked);
}

int64_t interleaveOf(ProductKernel kernel, Type right) {
  int64_t inBytes = rowOf(kernel).interleave;
  bool takesCodes = kernel == ProductKernel::codes || kernel == ProductKernel::code_digits;
  return takesCodes && right.isInteger(4) ? 2 * inBytes : inBytes; // two in a byte
}

bool joinsImages(ConvOp op, int64_t lanes) {
  constexpr int64_t leastPart = 32; // of an image's lanes that are empty
  ArrayRef<int64_t> sizes = cast<RankedTensorType>(op.getType()).getShape();
  int64_t pixels = 1;
  for (int64_t size : sizes.drop_front(2))
    if (ShapedType::isDynamic(size) || llvm::MulOverflow(pixels, size, pixels))
      return false;
  if (sizes[0] == 1 || pixels == 0)
    return false;
  int64_t empty = (lanes - pixels % lanes) % lanes;
  return pixels <= lanes || empty > (pixels + empty) / leastPart;
}

int64_t digitSegment(int64_t group, int64_t interleave, int64_t lanes) {
  int64_t most = lanes >= 16 ? 64 : 32; // four to a register
  int64_t best = interleave;
  for (int64_t size = interleave; size <= std::min(group, most); size += interleave)
    if (group % size == 0)
      best = size;
  return best;
}

} // namespace deepstride::ds
