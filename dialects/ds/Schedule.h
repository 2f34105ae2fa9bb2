// Which products micro-kernels compute, and how what they read lies in memory: what passes that schedule and pack,
// recipes and code generation agree on.
#ifndef DEEPSTRIDE_DIALECTS_DS_SCHEDULE_H
#define DEEPSTRIDE_DIALECTS_DS_SCHEDULE_H

#include "dialects/ds/DsDialect.h"

namespace deepstride::ds {

/// Null for an op that is computed by plain loops.
inline ScheduleAttr scheduleOf(mlir::Operation *op) { return op->getAttrOfType<ScheduleAttr>(scheduleAttr); }

/// Whether products of integers of this type are summed in i32.
inline bool isSummedWide(mlir::Type element) {
  return llvm::isa<mlir::IntegerType>(element) && (element.isInteger(8) || element.isInteger(16));
}

/// What may stand for the floats of a quantized weight.
inline bool isCode(mlir::Type element) { return element.isSignlessInteger(8) || element.isSignlessInteger(4); }

/// What lies in memory as whole bytes and is computed with lane by lane.
inline bool isPlain(mlir::Type element) {
  if (element.isF16() || element.isBF16() || element.isF32() || element.isF64())
    return true;
  auto integer = llvm::dyn_cast<mlir::IntegerType>(element);
  return integer && integer.getWidth() >= 8 && integer.getWidth() <= 64;
}

/// Element types of a product's operands and of its result.
struct ProductTypes {
  mlir::Type left, right, result;
};

/// Whether the kernel multiplies these, the right operand packed in the package or not.
inline bool multiplies(ProductKernel kernel, const ProductTypes &types, bool isPacked) {
  auto [left, right, result] = types;
  if (kernel == ProductKernel::codes)
    return isPacked && (left.isF32() || left.isBF16()) && result.isF32() && isCode(right);
  if (kernel == ProductKernel::bfloat_dot && isCode(right)) // bf16 holds every code
    return isPacked && left.isBF16() && result.isF32();
  if (!isPlain(left) || !isPlain(right) || !isPlain(result))
    return false;
  auto isByte = [](mlir::Type element) { return element.isInteger(8); };
  // Tiles need a packed left operand, which only products with weights have.
  if (!isPacked && (kernel == ProductKernel::byte_tiles || kernel == ProductKernel::bfloat_tiles))
    return false;
  switch (kernel) {
  case ProductKernel::bfloat_dot:
  case ProductKernel::bfloat_halves:
  case ProductKernel::bfloat_tiles: return left.isBF16() && right.isBF16() && result.isF32();
  case ProductKernel::byte_dot:
  case ProductKernel::byte_pairs:
  case ProductKernel::byte_tiles:
    return isByte(left) && isByte(right) && left.isUnsignedInteger() != right.isUnsignedInteger() &&
           result.isSignlessInteger(32);
  case ProductKernel::pair_dot:
    return left.isSignlessInteger(16) && isSummedWide(right) && !right.isUnsignedInteger(16) &&
           result.isSignlessInteger(32);
  case ProductKernel::multiply_add: return true;
  case ProductKernel::codes: break;
  }
  llvm_unreachable("all kernels handled");
}

/// Rows of the right operand whose elements of one column lie side by side in a panel.
inline int64_t interleaveOf(ProductKernel kernel, mlir::Type right) {
  switch (kernel) {
  case ProductKernel::multiply_add: return 1;
  case ProductKernel::codes: return right.isInteger(4) ? 2 : 1; // two in a byte
  case ProductKernel::pair_dot:
  case ProductKernel::bfloat_dot:
  case ProductKernel::bfloat_halves:
  case ProductKernel::bfloat_tiles: return 2;
  case ProductKernel::byte_dot:
  case ProductKernel::byte_pairs:
  case ProductKernel::byte_tiles: return 4;
  }
  llvm_unreachable("all kernels handled");
}

/// Bits of a sum in a register: narrow floats are summed in f32.
inline unsigned sumBits(mlir::Type result) {
  return llvm::isa<mlir::FloatType>(result) ? std::max(32U, result.getIntOrFloatBitWidth())
                                            : result.getIntOrFloatBitWidth();
}

} // namespace deepstride::ds

#endif
