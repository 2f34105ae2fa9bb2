// Canonical polynomials over atoms. An atom is a symbol or a function call, held as its canonical text, so that equal
// atoms are equal strings. Text parsing lives in SizeParser.cpp.
#include "dialects/ds/SizeExpr.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace deepstride {

SizeExpr::SizeExpr(int64_t value) {
  if (value != 0)
    terms[{}] = value;
}

static bool isIdentifier(llvm::StringRef name) {
  if (name.empty() || !(llvm::isAlpha(name[0]) || name[0] == '_'))
    return false;
  size_t end = name.size();
  if (name.ends_with("]")) {
    end = name.rfind('[');
    if (end == llvm::StringRef::npos || name.substr(end + 1).drop_back().empty() ||
        !llvm::all_of(name.substr(end + 1).drop_back(), llvm::isDigit))
      return false;
  }
  for (char c : name.take_front(end))
    if (!(llvm::isAlnum(c) || c == '_' || c == '.' || c == ':' || c == '/'))
      return false;
  static constexpr llvm::StringLiteral functions[] = {"floordiv", "ceildiv", "mod", "min", "max", "eq", "lt", "select"};
  return !llvm::is_contained(functions, name);
}

SizeExpr SizeExpr::atom(std::string text) {
  SizeExpr result;
  result.terms[{std::move(text)}] = 1;
  return result;
}

SizeExpr SizeExpr::symbol(llvm::StringRef name) {
  if (isIdentifier(name))
    return atom(name.str());
  std::string quoted = "`";
  for (char c : name)
    quoted += c == '`' ? '\'' : c;
  return atom(quoted + "`");
}

SizeExpr SizeExpr::call(llvm::StringRef name, llvm::ArrayRef<SizeExpr> arguments) {
  std::string text = name.str() + "(";
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ", " : "") + arguments[i].str();
  return atom(text + ")");
}

void SizeExpr::addTerm(const Monomial &monomial, int64_t coefficient) {
  int64_t &slot = terms[monomial];
  // Wraps, as products do.
  slot = static_cast<int64_t>(static_cast<uint64_t>(slot) + static_cast<uint64_t>(coefficient));
  if (slot == 0)
    terms.erase(monomial);
}

std::optional<int64_t> SizeExpr::constant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

namespace {
/// What was found out about an atom, so that it is found out once: each rule below looks into calls, whose arguments
/// are built by the same rules from calls in turn. Forgotten now and then, to stay small.
template <typename Fact> class AtomFacts {
public:
  template <typename Find> Fact get(llvm::StringRef atom, Find find) {
    if (auto known = facts.find(atom); known != facts.end())
      return known->second;
    Fact fact = find();
    constexpr unsigned most = 2048;
    if (facts.size() >= most)
      facts.clear();
    facts[atom] = fact;
    return fact;
  }

private:
  llvm::StringMap<Fact> facts;
};
} // namespace

static std::vector<SizeExpr> parseArguments(llvm::StringRef atom, llvm::StringRef function) {
  std::vector<SizeExpr> arguments;
  llvm::StringRef text = atom.drop_front(function.size() + 1).drop_back();
  int depth = 0;
  bool isQuoted = false;
  for (size_t begin = 0, i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '`')
      isQuoted = !isQuoted;
    if (!isQuoted && i < text.size())
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (i < text.size() && (isQuoted || depth > 0 || text[i] != ','))
      continue;
    auto argument = SizeExpr::parse(text.slice(begin, i));
    if (!argument)
      return {};
    arguments.push_back(*argument);
    begin = i + 1;
  }
  return arguments;
}

/// The arguments of a function call in canonical text; empty for anything else.
static std::vector<SizeExpr> argumentsOf(llvm::StringRef atom, llvm::StringRef function) {
  if (!atom.ends_with(")") || !atom.starts_with((function + "(").str()))
    return {};
  static thread_local AtomFacts<std::vector<SizeExpr>> known;
  return known.get(atom, [&] { return parseArguments(atom, function); });
}

// Only dimensions are certain to be non-negative; elements of inputs carry an index in brackets.
static bool findNonNegative(llvm::StringRef atom) {
  if (atom.starts_with("`"))
    return !atom.ends_with("]`");
  if (!atom.ends_with(")"))
    return !atom.ends_with("]");
  if (atom.starts_with("eq(") || atom.starts_with("lt("))
    return true;
  auto isNonNegative = [](const SizeExpr &argument) { return argument.isKnownNonNegative(); };
  if (auto arguments = argumentsOf(atom, "max"); !arguments.empty())
    return llvm::any_of(arguments, isNonNegative);
  if (auto arguments = argumentsOf(atom, "select"); arguments.size() == 3)
    return isNonNegative(arguments[1]) && isNonNegative(arguments[2]);
  for (llvm::StringRef function : {"min", "floordiv", "ceildiv", "mod"})
    if (auto arguments = argumentsOf(atom, function); !arguments.empty())
      return llvm::all_of(arguments, isNonNegative);
  return false;
}

static bool isNonNegativeAtom(llvm::StringRef atom) {
  static thread_local AtomFacts<bool> known;
  return atom.ends_with(")") ? known.get(atom, [&] { return findNonNegative(atom); }) : findNonNegative(atom);
}

bool SizeExpr::isKnownNonNegative() const { return isKnownNonNegative(/*substitutions=*/3); }

// Beyond the signs of terms: subtracting a minimum subtracts at most either argument, adding a maximum adds at least
// either.
bool SizeExpr::isKnownNonNegative(int substitutions) const {
  const std::pair<const Monomial, int64_t> *candidate = nullptr;
  bool isSum = true;
  for (const auto &term : terms) {
    const auto &[monomial, coefficient] = term;
    bool isBound = monomial.size() == 1 && llvm::StringRef(monomial[0]).starts_with(coefficient < 0 ? "min(" : "max(");
    if (isBound && !candidate)
      candidate = &term;
    isSum &= coefficient >= 0 && llvm::all_of(monomial, isNonNegativeAtom);
  }
  if (isSum || !candidate || substitutions == 0)
    return isSum;
  const auto &[monomial, coefficient] = *candidate;
  for (const SizeExpr &argument : argumentsOf(monomial[0], coefficient < 0 ? "min" : "max"))
    if ((*this + (argument - atom(monomial[0])) * SizeExpr(coefficient)).isKnownNonNegative(substitutions - 1))
      return true;
  return false;
}

std::string SizeExpr::str() const {
  if (terms.empty())
    return "0";
  // Higher-degree terms first and the constant last, as people write polynomials.
  std::vector<std::pair<Monomial, int64_t>> ordered(terms.begin(), terms.end());
  std::sort(ordered.begin(), ordered.end(), [](const auto &a, const auto &b) {
    return a.first.size() != b.first.size() ? a.first.size() > b.first.size() : a.first < b.first;
  });
  std::string text;
  for (const auto &[monomial, coefficient] : ordered) {
    uint64_t magnitude = coefficient < 0 ? 0 - static_cast<uint64_t>(coefficient) : coefficient;
    if (text.empty())
      text += coefficient < 0 ? "-" : "";
    else
      text += coefficient < 0 ? " - " : " + ";
    std::string factors;
    for (const std::string &name : monomial)
      factors += (factors.empty() ? "" : "*") + name;
    if (factors.empty())
      text += std::to_string(magnitude);
    else
      text += (magnitude == 1 ? "" : std::to_string(magnitude) + "*") + factors;
  }
  return text;
}

SizeExpr operator+(const SizeExpr &a, const SizeExpr &b) {
  SizeExpr result = a;
  for (const auto &[monomial, coefficient] : b.terms)
    result.addTerm(monomial, coefficient);
  return result;
}

SizeExpr operator-(const SizeExpr &a, const SizeExpr &b) {
  SizeExpr result = a;
  for (const auto &[monomial, coefficient] : b.terms)
    result.addTerm(monomial, -coefficient);
  return result;
}

SizeExpr operator*(const SizeExpr &a, const SizeExpr &b) {
  // A product of many sums is kept as one atom per operand: written out it could exhaust the memory.
  constexpr size_t termLimit = 1024;
  if (a.terms.size() * b.terms.size() > termLimit) {
    auto opaque = [](const SizeExpr &sum) { return sum.terms.size() > 1 ? SizeExpr::call("max", {sum, sum}) : sum; };
    return opaque(a) * opaque(b);
  }
  SizeExpr result;
  for (const auto &[left, leftCoefficient] : a.terms)
    for (const auto &[right, rightCoefficient] : b.terms) {
      SizeExpr::Monomial merged;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(merged));
      // Wraps instead of overflowing: hostile constants must not be undefined behaviour; the runtime re-checks sizes.
      result.addTerm(merged, static_cast<int64_t>(static_cast<uint64_t>(leftCoefficient) *
                                                  static_cast<uint64_t>(rightCoefficient)));
    }
  return result;
}

/// The exact quotient where the divisor is one monomial that divides every term.
std::optional<SizeExpr> SizeExpr::dividedBy(const SizeExpr &divisor) const {
  if (divisor.terms.size() != 1)
    return *this == divisor ? std::optional<SizeExpr>(SizeExpr(1)) : std::nullopt;
  const auto &[divisorAtoms, divisorCoefficient] = *divisor.terms.begin();
  SizeExpr quotient;
  for (const auto &[monomial, coefficient] : terms) {
    if (divisorCoefficient == -1 || coefficient % divisorCoefficient != 0 || !llvm::includes(monomial, divisorAtoms))
      return std::nullopt;
    Monomial rest;
    std::set_difference(monomial.begin(), monomial.end(), divisorAtoms.begin(), divisorAtoms.end(),
                        std::back_inserter(rest));
    quotient.addTerm(rest, coefficient / divisorCoefficient);
  }
  return quotient;
}

SizeExpr SizeExpr::floorDiv(const SizeExpr &a, const SizeExpr &b) {
  if (b.isConstant(1))
    return a;
  if (b.isConstant(0))
    return call("floordiv", {a, b}); // diagnosed when evaluated
  if (auto quotient = a.dividedBy(b))
    return *quotient;
  auto divisor = b.constant();
  if (divisor && a.constant() && *divisor > 0)
    return llvm::divideFloorSigned(*a.constant(), *divisor);
  if (divisor && *divisor > 0) {
    // floor((c*q + r) / c) = q + floor(r / c): split off the terms that divide exactly.
    SizeExpr whole, rest;
    for (const auto &[monomial, coefficient] : a.terms) {
      int64_t quotient = llvm::divideFloorSigned(coefficient, *divisor);
      if (coefficient % *divisor == 0 || monomial.empty()) {
        whole.addTerm(monomial, quotient);
        coefficient % *divisor ? rest.addTerm(monomial, coefficient - quotient * *divisor) : void();
      } else {
        rest.addTerm(monomial, coefficient);
      }
    }
    if (auto value = rest.constant())
      return whole + SizeExpr(*value / *divisor);
    return whole + call("floordiv", {rest, b});
  }
  return call("floordiv", {a, b});
}

SizeExpr SizeExpr::ceilDiv(const SizeExpr &a, const SizeExpr &b) {
  if (auto divisor = b.constant(); divisor && *divisor > 0)
    return floorDiv(a + SizeExpr(*divisor - 1), b);
  if (auto quotient = b.isConstant(0) ? std::nullopt : a.dividedBy(b))
    return *quotient;
  return call("ceildiv", {a, b});
}

SizeExpr SizeExpr::mod(const SizeExpr &a, const SizeExpr &b) {
  auto divisor = b.constant();
  if (divisor && *divisor > 0 && a.constant())
    return llvm::mod(*a.constant(), *divisor);
  if (!b.isConstant(0) && a.dividedBy(b))
    return 0;
  return call("mod", {a, b});
}

SizeExpr SizeExpr::min(const SizeExpr &a, const SizeExpr &b) {
  if ((b - a).isKnownNonNegative())
    return a;
  if ((a - b).isKnownNonNegative())
    return b;
  return a.str() < b.str() ? call("min", {a, b}) : call("min", {b, a});
}

/// The arguments of a `select`, unless it is so long that taking it apart again and again would take its time.
static std::vector<SizeExpr> choiceOf(const SizeExpr &size) {
  constexpr size_t lengthLimit = 512;
  std::string text = size.str();
  return text.size() <= lengthLimit ? argumentsOf(text, "select") : std::vector<SizeExpr>();
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

/// A table of n rows cut from row v to row u: min(n, u) - min(n, v) as min(u - v, max(0, n - v)), where u >= v.
std::optional<SizeExpr> SizeExpr::cutLength() const {
  if (terms.size() != 2)
    return std::nullopt;
  std::vector<SizeExpr> end, start;
  for (const auto &[monomial, coefficient] : terms)
    if (monomial.size() == 1 && (coefficient == 1 || coefficient == -1))
      (coefficient == 1 ? end : start) = argumentsOf(monomial[0], "min");
  if (end.size() != 2 || start.size() != 2)
    return std::nullopt;
  for (unsigned i : {0, 1})
    for (unsigned j : {0, 1})
      if (end[i] == start[j] && (end[1 - i] - start[1 - j]).isKnownNonNegative())
        return min(end[1 - i] - start[1 - j], max(end[i] - start[1 - j], 0));
  return std::nullopt;
}

SizeExpr SizeExpr::max(const SizeExpr &a, const SizeExpr &b) {
  if ((a - b).isKnownNonNegative())
    return a;
  if ((b - a).isKnownNonNegative())
    return b;
  if (a.isConstant(0) || b.isConstant(0))
    if (auto length = (a.isConstant(0) ? b : a).cutLength())
      return *length;
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
  SizeExpr difference = a - b;
  if (auto value = difference.constant())
    return *value == 0;
  if ((difference - SizeExpr(1)).isKnownNonNegative() || (b - a - SizeExpr(1)).isKnownNonNegative())
    return 0;
  return a.str() < b.str() ? call("eq", {a, b}) : call("eq", {b, a});
}

SizeExpr SizeExpr::lt(const SizeExpr &a, const SizeExpr &b) {
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
  auto arguments = argumentsOf(size.str(), "select");
  return arguments.size() == 3 && arguments[0] == SizeExpr::eq(arguments[2], 1) &&
         (isBroadcastFrom(arguments[1], part) || isBroadcastFrom(arguments[2], part));
}

SizeExpr SizeExpr::select(const SizeExpr &condition, const SizeExpr &a, const SizeExpr &b) {
  if (auto value = condition.constant())
    return *value ? a : b;
  if (a == b)
    return a;
  // The smaller or the larger of two sizes, as the clamping of negative indices writes it.
  if (auto compared = argumentsOf(condition.str(), "lt"); compared.size() == 2) {
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

std::string SizeExpr::brief() const {
  constexpr size_t longest = 80, beginning = 48;
  constexpr llvm::StringLiteral gap = "...";
  std::string text = str();
  if (text.size() <= longest)
    return text;
  // Names may hold UTF-8, whose characters stay whole.
  auto isInside = [&](size_t place) { return (text[place] & 0xC0) == 0x80; };
  size_t head = beginning, tail = text.size() - (longest - beginning - gap.size());
  while (head > 0 && isInside(head))
    --head;
  while (tail < text.size() && isInside(tail))
    ++tail;
  return text.substr(0, head) + gap.str() + text.substr(tail);
}

std::string brief(llvm::ArrayRef<SizeExpr> sizes) {
  return "[" + llvm::join(llvm::map_range(sizes, [](const SizeExpr &size) { return size.brief(); }), ", ") + "]";
}

SizeExpr product(llvm::ArrayRef<SizeExpr> sizes) {
  SizeExpr result = 1;
  for (const SizeExpr &size : sizes)
    result = result * size;
  return result;
}

mlir::Attribute toAttribute(mlir::MLIRContext *context, const SizeExpr &size) {
  if (auto value = size.constant())
    return mlir::IntegerAttr::get(mlir::IntegerType::get(context, 64), *value);
  return mlir::StringAttr::get(context, size.str());
}

mlir::ArrayAttr toAttribute(mlir::MLIRContext *context, llvm::ArrayRef<SizeExpr> sizes) {
  llvm::SmallVector<mlir::Attribute> attributes;
  for (const SizeExpr &size : sizes)
    attributes.push_back(toAttribute(context, size));
  return mlir::ArrayAttr::get(context, attributes);
}

std::optional<SizeExpr> sizeFromAttribute(mlir::Attribute attribute) {
  if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(attribute))
    return SizeExpr(integer.getValue().getSExtValue());
  if (auto text = mlir::dyn_cast<mlir::StringAttr>(attribute))
    return SizeExpr::parse(text.getValue());
  return std::nullopt;
}

std::optional<SizeVector> sizesFromAttribute(mlir::ArrayAttr attribute) {
  SizeVector sizes;
  for (mlir::Attribute element : attribute) {
    auto size = sizeFromAttribute(element);
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

} // namespace deepstride
