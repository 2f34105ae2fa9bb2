#include "passes/training/GradientNorm.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

Value blockNorms(DsBuilder &b, Value tensor, Type element) {
  SizeExpr count = product(b.sizes(tensor));
  Value flat = b.reshape(tensor, {count});
  if (auto constant = count.constant(); constant && (*constant % normBlock != 0 || *constant == normBlock)) {
    int64_t rest = std::max<int64_t>(llvm::divideCeil(*constant, normBlock), 2) * normBlock - *constant;
    flat = b.pad(ds::PadKind::constant, flat, b.scalar(b.element(flat), 0), {SizeExpr(0)}, {SizeExpr(rest)});
    count = SizeExpr(*constant + rest);
  }
  SizeExpr rows = SizeExpr::exactQuotient(count, SizeExpr(normBlock)).value_or(SizeExpr(0));
  Value split = b.reshape(flat, {rows, SizeExpr(normBlock)});
  return b.reduce(ReduceKind::l2, element ? b.cast(split, element) : split, {1}, /*keep=*/false);
}

void GradientNorm::add(DsBuilder &b, Value gradient, Value isThere, Type element) {
  Value norms = b.cast(blockNorms(b, gradient, element), b.f64());
  blocks.push_back(isThere ? b.select(isThere, norms, b.scalar(b.f64(), 0)) : norms);
}

/// The least power of two that is not below x > 0: what is lost of 2^53 * x + x (Rump, Ogita and Oishi 2008, algorithm
/// 3.6).
static Value powerAbove(DsBuilder &b, Value x) {
  Value far = b.mul(x, 0x1p53);
  Value power = b.unary(UnaryKind::abs, b.sub(b.add(far, x), far));
  return b.select(b.binary(BinaryKind::eq, power, b.scalar(b.f64(), 0)), x, power);
}

Value GradientNorm::finish(DsBuilder &b, Combine combine) {
  if (blocks.empty() || llvm::is_contained(blocks, Value()))
    return {};
  Value all = blocks.size() == 1 ? blocks.front() : b.concat(0, blocks);
  Value greatest = b.reduce(ReduceKind::max, all, {0}, /*keep=*/false);
  if (combine)
    greatest = combine(greatest, /*isMaximum=*/true);
  // Whatever is below counts nothing; the least f32 that is no zero is 2^-149.
  Value unit = powerAbove(b, b.binary(BinaryKind::max, greatest, b.scalar(b.f64(), 0x1p-900)));
  Value scaled = b.mul(all, b.div(b.scalar(b.f64(), 1), unit));
  Value rest = b.mul(scaled, scaled); // at most 1 each, 2^bits together
  int64_t bits = static_cast<int64_t>(llvm::Log2_64_Ceil(static_cast<uint64_t>(elements / normBlock + 2))) + 1;
  SmallVector<Value> sums;
  double cut = std::ldexp(1, static_cast<int>(bits + 1));
  // Each level has 51 - bits binary places more; 2^-24 of the sum at least remain where all but one block are tiny.
  for (int level = 0, levels = bits > 26 ? 3 : 2; level < levels; ++level) {
    Value high = b.sub(b.add(rest, cut), cut);
    rest = b.sub(rest, high);
    sums.push_back(b.reduce(ReduceKind::sum, high, {0}, /*keep=*/true));
    cut = std::ldexp(cut, static_cast<int>(bits - 52));
  }
  Value parts = b.concat(0, sums);
  if (combine)
    parts = combine(parts, /*isMaximum=*/false);
  Value sum = b.reduce(ReduceKind::sum, parts, {0}, /*keep=*/false);
  return b.mul(unit, b.unary(UnaryKind::sqrt, sum));
}

} // namespace deepstride
