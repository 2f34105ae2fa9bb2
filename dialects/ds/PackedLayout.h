// How the weight of a product lies in memory once it is packed: what passes that pack, recipes and micro-kernels agree
// on.
#ifndef DEEPSTRIDE_DIALECTS_DS_PACKEDLAYOUT_H
#define DEEPSTRIDE_DIALECTS_DS_PACKEDLAYOUT_H

#include "mlir/IR/BuiltinTypes.h"

namespace deepstride::ds {

struct PackedLayout {
  int64_t panel;      // columns of a panel
  int64_t interleave; // rows whose elements of one column lie side by side
};

/// Whether products of integers of this type are summed in i32.
inline bool isSummedWide(mlir::Type element) {
  return llvm::isa<mlir::IntegerType>(element) && (element.isInteger(8) || element.isInteger(16));
}

/// What may stand for the floats of a quantized weight.
inline bool isCode(mlir::Type element) { return element.isSignlessInteger(8) || element.isSignlessInteger(4); }

/// The layout of weights of type `right` that meet operands of type `left`, on a target whose panels have `floats`
/// columns of f32: panels have as many vectors of sums, and what instructions multiply in pairs (16 bits) or in fours
/// (unsigned by signed bytes) lies side by side, as does bf16 that is summed in f32 (`isWide`); f16 is widened as it is
/// loaded. Codes that meet floats have as many columns as those have, and those of 4 bits lie in pairs in a byte.
inline PackedLayout packedLayout(mlir::Type left, mlir::Type right, int64_t floats, bool isWide = false) {
  if (isWide && right.isBF16())
    return {floats, 2};
  auto isByte = [](mlir::Type element) { return element.isInteger(8); };
  if (isByte(left) && isByte(right) && left.isUnsignedInteger() != right.isUnsignedInteger())
    return {floats, 4};
  if (left.isSignlessInteger(16) && isSummedWide(right) && !right.isUnsignedInteger(16))
    return {floats, 2};
  if (llvm::isa<mlir::FloatType>(left) && isCode(right))
    return {floats, right.isInteger(4) ? 2 : 1};
  unsigned bits = isSummedWide(right) ? 32 : std::max(32U, right.getIntOrFloatBitWidth());
  return {floats * 32 / bits, 1};
}

} // namespace deepstride::ds

#endif
