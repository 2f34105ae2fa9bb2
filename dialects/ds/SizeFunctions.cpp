// What functions of sizes simplify to. Every rule holds for all values of the symbols, also for 0 and, where elements
// of inputs occur, below it; a division by 0 stays one.
#include "dialects/ds/SizeExpr.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace deepstride {

SizeExpr SizeExpr::call(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments) {
  return SizeAtom::call(function, arguments);
}

/// The simplified call.
SizeExpr SizeExpr::build(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments) {
  using Binary = SizeExpr (*)(const SizeExpr &, const SizeExpr &);
  if (function == "select")
    return select(arguments[0], arguments[1], arguments[2]);
  if (function == "within")
    return call(function, arguments);
  Binary binary = llvm::StringSwitch<Binary>(function)
                      .Case("floordiv", &SizeExpr::floorDiv)
                      .Case("ceildiv", &SizeExpr::ceilDiv)
                      .Case("mod", &SizeExpr::mod)
                      .Case("min", &SizeExpr::min)
                      .Case("max", &SizeExpr::max)
                      .Case("eq", &SizeExpr::eq)
                      .Case("lt", &SizeExpr::lt);
  return binary(arguments[0], arguments[1]);
}

SizeExpr SizeExpr::within(const SizeExpr &value, int64_t low, int64_t high) {
  if (auto known = value.constant(); known && *known >= low && *known <= high)
    return value;
  SizeRange range = value.range();
  return range.low >= low && range.high <= high ? value : assumed(value, low, high);
}

SizeExpr SizeExpr::assumed(const SizeExpr &value, int64_t low, int64_t high) {
  return call("within", {value, low, high});
}

/// Where the divisor is one monomial that divides every term, or the dividend itself.
std::optional<SizeExpr> SizeExpr::exactQuotient(const SizeExpr &a, const SizeExpr &b) {
  if (b.terms.size() != 1)
    return a == b && !b.terms.empty() ? std::optional<SizeExpr>(SizeExpr(1)) : std::nullopt;
  const auto &[divisorAtoms, divisor] = *b.terms.begin();
  SizeExpr quotient;
  for (const auto &[monomial, coefficient] : a.terms) {
    if (divisor == -1 || coefficient % divisor != 0 || !llvm::includes(monomial, divisorAtoms))
      return std::nullopt;
    Monomial rest;
    std::set_difference(monomial.begin(), monomial.end(), divisorAtoms.begin(), divisorAtoms.end(),
                        std::back_inserter(rest));
    quotient.addTerm(rest, coefficient / divisor);
  }
  return quotient;
}

/// Whether the quotient of two numbers is one that 64 bits hold.
static bool isQuotient(int64_t a, int64_t b) { return b != 0 && !llvm::divideSignedWouldOverflow(a, b); }

static bool isNeverZero(const SizeExpr &size) {
  SizeRange range = size.range();
  return range.low > 0 || range.high < 0;
}

SizeExpr SizeExpr::floorDiv(const SizeExpr &a, const SizeExpr &b) {
  if (b.isConstant(1))
    return a;
  auto quotient = isNeverZero(b) ? exactQuotient(a, b) : std::nullopt;
  if (quotient)
    return *quotient;
  int64_t divisor = b.constant().value_or(0);
  if (auto value = a.constant(); value && isQuotient(*value, divisor))
    return llvm::divideFloorSigned(*value, divisor);
  if (divisor <= 0)
    return call("floordiv", {a, b}); // by 0: diagnosed when evaluated
  // floor((c*q + r) / c) = q + floor(r / c): split off the terms that divide exactly.
  SizeExpr whole, rest;
  for (const auto &[monomial, coefficient] : a.terms) {
    int64_t remainder = llvm::mod(coefficient, divisor);
    if (remainder == 0 || monomial.empty())
      whole.addTerm(monomial, llvm::divideFloorSigned(coefficient, divisor));
    if (remainder != 0)
      rest.addTerm(monomial, monomial.empty() ? remainder : coefficient);
  }
  return rest.constant() ? whole : whole + call("floordiv", {rest, b});
}

SizeExpr SizeExpr::ceilDiv(const SizeExpr &a, const SizeExpr &b) {
  int64_t divisor = b.constant().value_or(0);
  if (auto value = a.constant(); value && isQuotient(*value, divisor))
    return llvm::divideCeilSigned(*value, divisor);
  if (divisor > 0 && divisor <= INT32_MAX) // larger ones might overflow where the quotient does not
    return floorDiv(a + SizeExpr(divisor - 1), b);
  auto quotient = isNeverZero(b) ? exactQuotient(a, b) : std::nullopt;
  return quotient ? *quotient : call("ceildiv", {a, b});
}

SizeExpr SizeExpr::mod(const SizeExpr &a, const SizeExpr &b) {
  int64_t divisor = b.constant().value_or(0);
  if (divisor == 1 || divisor == -1)
    return 0;
  if (auto value = a.constant(); value && divisor != 0) {
    int64_t rest = *value % divisor;
    return rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
  }
  return isNeverZero(b) && exactQuotient(a, b) ? SizeExpr(0) : call("mod", {a, b});
}

/// Both numbers, where they are known: their difference may be one that 64 bits do not hold.
static std::optional<std::pair<int64_t, int64_t>> bothConstant(const SizeExpr &a, const SizeExpr &b) {
  auto left = a.constant(), right = b.constant();
  return left && right ? std::optional(std::pair(*left, *right)) : std::nullopt;
}

SizeExpr SizeExpr::min(const SizeExpr &a, const SizeExpr &b) {
  if (auto known = bothConstant(a, b))
    return std::min(known->first, known->second);
  if ((b - a).isKnownNonNegative())
    return a;
  if ((a - b).isKnownNonNegative())
    return b;
  return a.str() < b.str() ? call("min", {a, b}) : call("min", {b, a});
}

/// The arguments of a `select`, unless it is so long that taking it apart again and again would take its time.
static llvm::ArrayRef<SizeExpr> choiceOf(const SizeExpr &size) {
  constexpr size_t lengthLimit = 512;
  const SizeAtom *atom = size.asAtom();
  return atom && atom->text().size() <= lengthLimit ? size.argumentsOf("select") : llvm::ArrayRef<SizeExpr>();
}

/// A size that was broadcast from parts, where it is known that `part` is 1.
static SizeExpr withoutPart(const SizeExpr &size, const SizeExpr &part) {
  if (size == part)
    return 1;
  auto choice = choiceOf(size);
  if (choice.size() != 3 || choice[0] != SizeExpr::eq(choice[2], 1))
    return size;
  return choice[2] == part ? choice[1] : SizeExpr::select(choice[0], withoutPart(choice[1], part), choice[2]);
}

bool SizeExpr::isMinimumOf(const SizeExpr &whole, int64_t least) const {
  llvm::ArrayRef<SizeExpr> arguments = argumentsOf("min");
  if (arguments.empty())
    return false;
  auto isWhole = [&](const SizeExpr &size) { return size == whole || size.isMinimumOf(whole, least); };
  auto isEnough = [&](const SizeExpr &size) { return (size - SizeExpr(least)).isKnownNonNegative(); };
  return (isWhole(arguments[0]) && isEnough(arguments[1])) || (isWhole(arguments[1]) && isEnough(arguments[0]));
}

/// A table of n rows cut from row v to row u: min(n, u) - min(n, v) as min(u - v, max(0, n - v)), where u >= v.
std::optional<SizeExpr> SizeExpr::cutLength() const {
  if (terms.size() != 2)
    return std::nullopt;
  llvm::ArrayRef<SizeExpr> end, start;
  for (const auto &[monomial, coefficient] : terms)
    if (monomial.size() == 1 && (coefficient == 1 || coefficient == -1) && monomial[0].name() == "min")
      (coefficient == 1 ? end : start) = monomial[0].arguments();
  if (end.size() != 2 || start.size() != 2)
    return std::nullopt;
  for (unsigned i : {0, 1})
    for (unsigned j : {0, 1})
      if (end[i] == start[j] && (end[1 - i] - start[1 - j]).isKnownNonNegative())
        return min(end[1 - i] - start[1 - j], max(end[i] - start[1 - j], 0));
  return std::nullopt;
}

SizeExpr SizeExpr::max(const SizeExpr &a, const SizeExpr &b) {
  if (auto known = bothConstant(a, b))
    return std::max(known->first, known->second);
  if (a.isConstant(0) || b.isConstant(0))
    if (auto length = (a.isConstant(0) ? b : a).cutLength())
      return *length;
  if ((a - b).isKnownNonNegative())
    return a;
  if ((b - a).isKnownNonNegative())
    return b;
  // Shapes broadcast by their maximum, as tf2onnx does it: b broadcast with y, or b again; or both by one condition.
  auto left = choiceOf(a), right = choiceOf(b);
  if (left.size() == 3 && left[2] == b && left[0] == eq(b, 1))
    return select(left[0], max(left[1], 1), b);
  if (right.size() == 3 && right[2] == a && right[0] == eq(a, 1))
    return select(right[0], max(right[1], 1), a);
  if (left.size() == 3 && right.size() == 3 && left[0] == right[0] && left[2] == right[2])
    return select(left[0], max(left[1], right[1]), left[2]);
  return a.str() < b.str() ? call("max", {a, b}) : call("max", {b, a});
}

SizeExpr SizeExpr::eq(const SizeExpr &a, const SizeExpr &b) {
  if (auto known = bothConstant(a, b))
    return known->first == known->second;
  SizeExpr difference = a - b;
  if (auto value = difference.constant())
    return *value == 0;
  if ((difference - SizeExpr(1)).isKnownNonNegative() || (b - a - SizeExpr(1)).isKnownNonNegative())
    return 0;
  return a.str() < b.str() ? call("eq", {a, b}) : call("eq", {b, a});
}

SizeExpr SizeExpr::lt(const SizeExpr &a, const SizeExpr &b) {
  if (auto known = bothConstant(a, b))
    return known->first < known->second;
  if ((a - b).isKnownNonNegative())
    return 0;
  if ((b - a - SizeExpr(1)).isKnownNonNegative())
    return 1;
  if (auto difference = (a - b).constant())
    return *difference < 0;
  return call("lt", {a, b});
}

/// Whether `part` is among the sizes that were broadcast to `size`: select(eq(x, 1), y, x) is x broadcast with y.
static bool isBroadcastFrom(const SizeExpr &size, const SizeExpr &part) {
  if (size == part)
    return true;
  auto arguments = size.argumentsOf("select");
  return arguments.size() == 3 && arguments[0] == SizeExpr::eq(arguments[2], 1) &&
         (isBroadcastFrom(arguments[1], part) || isBroadcastFrom(arguments[2], part));
}

SizeExpr SizeExpr::select(const SizeExpr &condition, const SizeExpr &a, const SizeExpr &b) {
  if (auto value = condition.constant())
    return *value ? a : b;
  if (a == b)
    return a;
  // The smaller or the larger of two sizes, as the clamping of negative indices writes it.
  if (auto compared = condition.argumentsOf("lt"); compared.size() == 2) {
    if (a == compared[0] && b == compared[1])
      return min(a, b);
    if (a == compared[1] && b == compared[0])
      return max(a, b);
  }
  // Broadcasting once more with a part changes nothing: where the whole is 1, each part is. Without this rule a size
  // doubles in length with every residual connection.
  if (condition == eq(b, 1)) {
    if (isBroadcastFrom(b, a) || a == max(b, 1))
      return b;
    if (b == max(a, 1))
      return a;
    // (x broadcast with y) broadcast with z is x broadcast with (y broadcast with z).
    if (auto inner = choiceOf(b); inner.size() == 3 && inner[0] == eq(inner[2], 1))
      return select(inner[0], select(eq(inner[1], 1), withoutPart(a, inner[2]), inner[1]), inner[2]);
  }
  // What the same condition chooses inside is known.
  if (auto inner = choiceOf(a); inner.size() == 3 && inner[0] == condition)
    return select(condition, inner[1], b);
  if (auto inner = choiceOf(b); inner.size() == 3 && inner[0] == condition)
    return select(condition, a, inner[2]);
  return call("select", {condition, a, b});
}

} // namespace deepstride
