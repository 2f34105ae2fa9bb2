// Atoms of size expressions: their texts, and what is known of their values. Everything about an atom is found out
// once, when it is made.
#include "dialects/ds/SizeAtom.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace deepstride {

using Wide = SizeRange::Wide;

/// A bound at this distance stands for any beyond it.
static constexpr Wide infinity = Wide(1) << 120;

static Wide saturated(Wide bound) { return std::clamp(bound, -infinity, infinity); }

static SizeRange operator+(const SizeRange &a, const SizeRange &b) {
  bool isOpenBelow = a.low == -infinity || b.low == -infinity, isOpenAbove = a.high == infinity || b.high == infinity;
  return {isOpenBelow ? -infinity : saturated(a.low + b.low), isOpenAbove ? infinity : saturated(a.high + b.high)};
}

static SizeRange operator*(const SizeRange &a, const SizeRange &b) {
  Wide low = infinity, high = -infinity;
  for (Wide x : {a.low, a.high})
    for (Wide y : {b.low, b.high}) {
      Wide corner;
      if (__builtin_mul_overflow(x, y, &corner))
        corner = (x < 0) == (y < 0) ? infinity : -infinity;
      low = std::min(low, saturated(corner)), high = std::max(high, saturated(corner));
    }
  return {low, high};
}

static Wide floorDivided(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Of a quotient rounded either way; a divisor of 0 has no quotient.
static SizeRange quotient(SizeRange a, SizeRange b) {
  if (b.high < 0) // the quotient of the negated
    a = {-a.high, -a.low}, b = {-b.high, -b.low};
  if (b.low >= 0) {
    b.low = std::max<Wide>(b.low, 1), b.high = std::max<Wide>(b.high, 1);
    Wide low = std::min(floorDivided(a.low, b.low), floorDivided(a.low, b.high));
    Wide high = std::max(-floorDivided(-a.high, b.low), -floorDivided(-a.high, b.high));
    return {a.low == -infinity ? a.low : low, a.high == infinity ? a.high : high};
  }
  Wide most = std::max(-std::min<Wide>(a.low, 0), std::max<Wide>(a.high, 0));
  return {-most, most};
}

static SizeRange remainder(const SizeRange &a, const SizeRange &b) {
  if (b.low >= 0) {
    Wide high = std::max<Wide>(b.high - 1, 0);
    return {0, a.low >= 0 ? std::min(a.high, high) : high};
  }
  return {std::min<Wide>(b.low + 1, 0), std::max<Wide>(b.high - 1, 0)};
}

static SizeRange rangeOfCall(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments) {
  SizeRange a = arguments[0].range();
  if (function == "eq" || function == "lt")
    return {0, 1};
  SizeRange b = arguments[1].range();
  if (function == "min")
    return {std::min(a.low, b.low), std::min(a.high, b.high)};
  if (function == "max")
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
  if (function == "floordiv" || function == "ceildiv")
    return quotient(a, b);
  if (function == "mod")
    return remainder(a, b);
  SizeRange c = arguments[2].range();
  if (function == "select")
    return {std::min(b.low, c.low), std::max(b.high, c.high)};
  return {b.low, c.high}; // within: what wrapped may be anything there
}

static bool isNonNegativeCall(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments) {
  auto isNonNegative = [](const SizeExpr &argument) { return argument.isKnownNonNegative(); };
  if (function == "eq" || function == "lt")
    return true;
  if (function == "max")
    return llvm::any_of(arguments, isNonNegative);
  if (function == "select")
    return isNonNegative(arguments[1]) && isNonNegative(arguments[2]);
  if (function == "within") {
    // Rounding to a float, whose bounds are symmetric, keeps a sign; wrapping does not.
    bool isFloat = (arguments[1] + arguments[2]).isConstant(0);
    return isNonNegative(arguments[1]) || (isFloat && isNonNegative(arguments[0]));
  }
  if (function == "mod") // has the sign of the divisor
    return isNonNegative(arguments[1]);
  return llvm::all_of(arguments, isNonNegative); // min, quotients
}

static bool mayCallFail(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments) {
  if (function == "within" || llvm::any_of(arguments, [](const SizeExpr &a) { return a.mayFail(); }))
    return true;
  bool divides = function == "floordiv" || function == "ceildiv" || function == "mod";
  return divides && !(arguments[1].range().low > 0 || arguments[1].range().high < 0);
}

static bool isIdentifier(llvm::StringRef name) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == ':' || c == '/'; };
  static constexpr llvm::StringLiteral functions[] = {"floordiv", "ceildiv", "mod",    "min",   "max",
                                                      "eq",       "lt",      "select", "within"};
  return !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_') && llvm::all_of(name, isWord) &&
         !llvm::is_contained(functions, name);
}

static std::string spelled(llvm::StringRef name) {
  if (isIdentifier(name))
    return name.str();
  std::string quoted = "`";
  for (char c : name)
    quoted += c == '`' ? "``" : std::string(1, c);
  return quoted + "`";
}

SizeAtom::SizeAtom(Node node) : node(std::make_shared<const Node>(std::move(node))) {}

SizeAtom SizeAtom::symbol(Kind kind, llvm::StringRef name, int64_t index, SizeRange range) {
  std::string text = kind == Kind::Unknown ? "?" + name.str() : spelled(name);
  if (kind == Kind::Element)
    text += "[" + std::to_string(index) + "]";
  return SizeAtom(Node{kind,
                       name.str(),
                       index,
                       {},
                       std::move(text),
                       range,
                       range.low >= 0,
                       kind == Kind::Element,
                       /*mayFail=*/false,
                       /*depth=*/0});
}

SizeAtom SizeAtom::call(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments) {
  std::string text = function.str() + "(";
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ", " : "") + arguments[i].str();
  text += ")";
  SizeRange range = rangeOfCall(function, arguments);
  bool isNonNegative = isNonNegativeCall(function, arguments);
  if (isNonNegative)
    range = {std::max<Wide>(range.low, 0), std::max<Wide>(range.high, 0)};
  unsigned depth = 0;
  for (const SizeExpr &argument : arguments)
    depth = std::max(depth, argument.depth());
  return SizeAtom(Node{Kind::Call,
                       function.str(),
                       0,
                       {arguments.begin(), arguments.end()},
                       std::move(text),
                       range,
                       isNonNegative,
                       llvm::any_of(arguments, [](const SizeExpr &a) { return a.isOverElements(); }),
                       mayCallFail(function, arguments),
                       depth + 1});
}

SizeAtom::Kind SizeAtom::kind() const { return node->kind; }
llvm::StringRef SizeAtom::name() const { return node->name; }
int64_t SizeAtom::index() const { return node->index; }
llvm::ArrayRef<SizeExpr> SizeAtom::arguments() const { return node->arguments; }
llvm::StringRef SizeAtom::text() const { return node->text; }

SizeExpr SizeExpr::symbol(llvm::StringRef name) {
  // An axis of a mesh has a rank at least, so that sizes may be divided by it.
  bool isMesh = name.starts_with(meshPrefix), isIndex = isMesh && name.ends_with(".index");
  return SizeAtom::symbol(SizeAtom::Kind::Symbol, name, 0,
                          {isMesh && !isIndex ? 1 : 0, isMesh ? largestMesh : largestDimension});
}

SizeExpr SizeExpr::unknown(llvm::StringRef name) {
  return SizeAtom::symbol(SizeAtom::Kind::Unknown, name, 0, {0, largestDimension});
}

SizeExpr SizeExpr::element(llvm::StringRef input, int64_t index, unsigned bits) {
  Wide limit = Wide(1) << (bits - 1);
  return SizeAtom::symbol(SizeAtom::Kind::Element, input, index, {-limit, limit - 1});
}

SizeRange SizeExpr::range() const {
  // A model may multiply dimensions as it likes, the product need not be the size of a tensor. That of two, however, is
  // one as a rule, and no tensor has as many elements.
  constexpr Wide largestPair = Wide(1) << 56;
  auto isLikeDimension = [](const SizeAtom &atom) {
    const SizeAtom::Node &node = *atom.node;
    bool isBounded = node.range.low >= -largestDimension && node.range.high <= largestDimension;
    return isBounded && !node.isOverElements && !node.mayFail;
  };
  SizeRange total{0, 0};
  for (const auto &[monomial, coefficient] : terms) {
    SizeRange term{1, 1};
    for (size_t i = 0; i < monomial.size(); ++i) {
      SizeRange factor = monomial[i].node->range;
      if (i + 1 < monomial.size() && monomial[i + 1] == monomial[i]) { // a square is not negative
        factor = factor * factor;
        factor.low = std::max<Wide>(factor.low, 0);
        ++i;
      }
      term = term * factor;
    }
    if (monomial.size() == 2 && llvm::all_of(monomial, isLikeDimension))
      term = {std::max(term.low, -largestPair), std::min(term.high, largestPair)};
    total = total + term * SizeRange{coefficient, coefficient};
  }
  return total;
}

bool SizeExpr::isOverElements() const {
  return llvm::any_of(terms, [](const auto &term) {
    return llvm::any_of(term.first, [](const SizeAtom &atom) { return atom.node->isOverElements; });
  });
}

bool SizeExpr::mayFail() const {
  return llvm::any_of(terms, [](const auto &term) {
    return llvm::any_of(term.first, [](const SizeAtom &atom) { return atom.node->mayFail; });
  });
}

unsigned SizeExpr::depth() const {
  unsigned depth = 0;
  for (const auto &[monomial, coefficient] : terms)
    for (const SizeAtom &atom : monomial)
      depth = std::max(depth, atom.node->depth);
  return depth;
}

bool SizeExpr::isKnownNonNegative() const { return isKnownNonNegative(/*substitutions=*/3); }

// Beyond the signs of terms: a minimum, a maximum and a choice are one of their arguments. For a minimum that is
// subtracted, or a maximum that is added, one argument has to do; else all of them.
bool SizeExpr::isKnownNonNegative(int substitutions) const {
  const SizeAtom *bounds[2] = {nullptr, nullptr}; // the first of which one argument has to do, or all
  int64_t factors[2];
  bool isSum = true;
  for (const auto &[monomial, coefficient] : terms) {
    isSum &= coefficient >= 0 && llvm::all_of(monomial, [](const SizeAtom &atom) { return atom.node->isNonNegative; });
    if (monomial.size() != 1 || monomial[0].kind() != SizeAtom::Kind::Call)
      continue;
    llvm::StringRef function = monomial[0].name();
    if (function != "min" && function != "max" && function != "select")
      continue;
    bool needsAll = function != (coefficient < 0 ? "min" : "max");
    if (!bounds[needsAll])
      bounds[needsAll] = &monomial[0], factors[needsAll] = coefficient;
  }
  constexpr size_t termLimit = 64;
  if (isSum || substitutions == 0 || terms.size() > termLimit)
    return isSum;
  auto holdsFor = [&](bool needsAll) {
    return [&, needsAll](const SizeExpr &argument) {
      auto difference = exactSum(argument, SizeExpr(*bounds[needsAll]), -1);
      auto replaced = difference ? exactSum(*this, *difference, factors[needsAll]) : std::nullopt;
      return replaced && replaced->isKnownNonNegative(substitutions - 1);
    };
  };
  return (bounds[0] && llvm::any_of(bounds[0]->arguments().take_back(2), holdsFor(false))) ||
         (bounds[1] && llvm::all_of(bounds[1]->arguments().take_back(2), holdsFor(true)));
}

} // namespace deepstride
