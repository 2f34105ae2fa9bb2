// The ranges of element types, and what they say about contents.
#include "dialects/ds/Contents.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace deepstride {

using Wide = SizeRange::Wide;

bool isTracked(Type type) {
  return type && (type.isSignlessInteger(64) || type.isSignlessInteger(32) || type.isInteger(1) || type.isF32() ||
                  type.isF64());
}

/// The numbers that the type holds, of floats those among which it holds each.
static std::optional<SizeRange> rangeOf(Type type) {
  if (auto integer = dyn_cast_if_present<IntegerType>(type)) {
    Wide count = Wide(1) << integer.getWidth();
    bool isUnsigned = integer.isUnsigned() || integer.getWidth() == 1;
    return isUnsigned ? SizeRange{0, count - 1} : SizeRange{-count / 2, count / 2 - 1};
  }
  auto real = dyn_cast_if_present<FloatType>(type);
  if (!real || real.getWidth() < 16)
    return std::nullopt;
  Wide limit = Wide(1) << real.getFPMantissaWidth();
  return SizeRange{-limit, limit};
}

bool isExact(const SizeExpr &content, Type type) {
  auto legal = rangeOf(type);
  SizeRange range = content.range();
  return legal && range.low >= legal->low && range.high <= legal->high && !content.mayFail();
}

bool isExact(const TensorFacts &facts) {
  return facts.contents &&
         llvm::all_of(*facts.contents, [&](const SizeExpr &content) { return isExact(content, facts.elementType); });
}

/// The number that an integer of the type holds instead of a constant.
static SizeExpr wrapped(int64_t value, IntegerType type) {
  unsigned width = type.getWidth();
  if (width >= 64)
    return value;
  bool isUnsigned = type.isUnsigned() || width == 1;
  return isUnsigned ? static_cast<int64_t>(static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width))
                    : llvm::SignExtend64(static_cast<uint64_t>(value), width);
}

std::optional<SizeExpr> settled(const SizeExpr &content, Type type) {
  auto legal = rangeOf(type);
  if (!legal)
    return std::nullopt;
  int64_t low = static_cast<int64_t>(std::max<Wide>(legal->low, INT64_MIN)),
          high = static_cast<int64_t>(std::min<Wide>(legal->high, INT64_MAX));
  auto integer = dyn_cast<IntegerType>(type);
  if (auto known = content.constant()) {
    if (integer)
      return wrapped(*known, integer);
    return *known >= low && *known <= high ? std::optional(content) : std::nullopt;
  }
  return SizeExpr::within(content, low, high);
}

std::optional<SizeExpr> kept(const std::optional<SizeExpr> &content, Type type, bool mayBeMinusZero) {
  if (!content || (mayBeMinusZero && isa<FloatType>(type) && content->isConstant(0)))
    return std::nullopt;
  // Floats round at once, integers wrap in the end.
  if (isa<FloatType>(type) || content->constant())
    return settled(*content, type);
  constexpr Wide limit = Wide(1) << 90;
  SizeRange range = content->range();
  return range.low >= -limit && range.high <= limit ? content : std::nullopt;
}

} // namespace deepstride
