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

/// Whether 64 bits hold what the calls inside are given: the run evaluates these first, whatever becomes of them.
static bool fitsInside(const SizeExpr &content) {
  bool fits = true;
  (void)content.replacingCalls([&](StringRef, ArrayRef<SizeExpr> arguments) -> std::optional<SizeExpr> {
    for (const SizeExpr &argument : arguments)
      fits &= argument.range().low >= INT64_MIN && argument.range().high <= INT64_MAX;
    return std::nullopt;
  });
  return fits;
}

bool isExact(const SizeExpr &content, Type type) {
  auto legal = rangeOf(type);
  SizeRange range = content.range();
  return legal && range.low >= legal->low && range.high <= legal->high && !content.mayFail() && fitsInside(content);
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

/// The numbers of a range that 64 bits hold.
static std::pair<int64_t, int64_t> boundsIn64Bits(const SizeRange &range) {
  return {static_cast<int64_t>(std::max<Wide>(range.low, INT64_MIN)),
          static_cast<int64_t>(std::min<Wide>(range.high, INT64_MAX))};
}

std::optional<SizeExpr> settled(const SizeExpr &content, Type type) {
  auto legal = rangeOf(type);
  if (!legal)
    return std::nullopt;
  auto [low, high] = boundsIn64Bits(*legal);
  auto integer = dyn_cast<IntegerType>(type);
  if (auto known = content.constant()) {
    if (integer)
      return wrapped(*known, integer);
    return *known >= low && *known <= high ? std::optional(content) : std::nullopt;
  }
  return SizeExpr::within(content, low, high);
}

SizeExpr forSizes(const SizeExpr &content, Type type) {
  auto [low, high] = boundsIn64Bits(*rangeOf(type));
  return SizeExpr::assumed(content, low, high);
}

std::optional<SizeExpr> quotientUnlessZero(StringRef function, ArrayRef<SizeExpr> arguments) {
  bool divides = function == "floordiv" || function == "ceildiv" || function == "mod";
  if (!divides || !arguments[1].isKnownNonNegative())
    return std::nullopt;
  auto quotient = SizeExpr::exactQuotient(arguments[0], arguments[1]);
  return quotient && function == "mod" ? SizeExpr(0) : quotient;
}

SizeExpr withoutFailures(const SizeExpr &size) {
  if (!size.mayFail())
    return size;
  return size.replacingCalls([](StringRef function, ArrayRef<SizeExpr> arguments) {
    return function == "within" ? std::optional(arguments[0]) : quotientUnlessZero(function, arguments);
  });
}

std::optional<SizeExpr> kept(const std::optional<SizeExpr> &content, Type type, bool mayBeMinusZero) {
  if (!content || (mayBeMinusZero && isa<FloatType>(type) && content->isConstant(0)))
    return std::nullopt;
  // Floats round at once, integers wrap in the end.
  if (isa<FloatType>(type) || content->constant())
    return settled(*content, type);
  // Products of dimensions count elements; of the elements of inputs a hash is made.
  constexpr Wide limit = Wide(1) << 90;
  SizeRange range = content->range();
  bool isShort = range.low >= -limit && range.high <= limit;
  return isShort || !content->isOverElements() ? content : std::nullopt;
}

bool isTooLong(const SizeExpr &content) {
  constexpr size_t lengthLimit = 1024;
  constexpr unsigned depthLimit = 80; // the texts of deeper ones are refused
  return !content.constant() && (content.depth() > depthLimit || content.str().size() > lengthLimit);
}

} // namespace deepstride
