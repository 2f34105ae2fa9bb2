// Canonical polynomials over atoms, and their text. What functions of sizes simplify to is said in SizeFunctions.cpp,
// text parsing in SizeParser.cpp.
#include "dialects/ds/SizeExpr.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace deepstride {

SizeExpr::SizeExpr(int64_t value) {
  if (value != 0)
    terms[{}] = value;
}

/// False where the coefficient leaves 64 bits; the polynomial is useless then.
bool SizeExpr::addTerm(const Monomial &monomial, int64_t coefficient) {
  int64_t &slot = terms[monomial];
  if (llvm::AddOverflow(slot, coefficient, slot))
    return false;
  if (slot == 0)
    terms.erase(monomial);
  return true;
}

std::optional<int64_t> SizeExpr::constant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

const SizeAtom *SizeExpr::asAtom() const {
  bool isAtom = terms.size() == 1 && terms.begin()->second == 1 && terms.begin()->first.size() == 1;
  return isAtom ? &terms.begin()->first.front() : nullptr;
}

llvm::ArrayRef<SizeExpr> SizeExpr::argumentsOf(llvm::StringRef function) const {
  const SizeAtom *atom = asAtom();
  bool isCall = atom && atom->kind() == SizeAtom::Kind::Call && atom->name() == function;
  return isCall ? atom->arguments() : llvm::ArrayRef<SizeExpr>();
}

/// Higher-degree terms first and the constant last, as people write polynomials.
static std::vector<std::pair<SizeExpr::Monomial, int64_t>> inReadingOrder(const SizeExpr &size) {
  std::vector<std::pair<SizeExpr::Monomial, int64_t>> terms(size.polynomial().begin(), size.polynomial().end());
  std::sort(terms.begin(), terms.end(), [](const auto &a, const auto &b) {
    return a.first.size() != b.first.size() ? a.first.size() > b.first.size() : a.first < b.first;
  });
  return terms;
}

static void collectSymbols(const SizeAtom &atom, std::vector<SizeAtom> &symbols) {
  if (atom.kind() != SizeAtom::Kind::Call) {
    if (!llvm::is_contained(symbols, atom))
      symbols.push_back(atom);
    return;
  }
  for (const SizeExpr &argument : atom.arguments())
    for (const SizeAtom &symbol : argument.symbols())
      collectSymbols(symbol, symbols);
}

std::vector<SizeAtom> SizeExpr::symbols() const {
  std::vector<SizeAtom> symbols;
  for (const auto &[monomial, coefficient] : inReadingOrder(*this))
    for (const SizeAtom &atom : monomial)
      collectSymbols(atom, symbols);
  return symbols;
}

bool SizeExpr::dependsOn(llvm::StringRef symbolName) const {
  return llvm::any_of(symbols(), [&](const SizeAtom &symbol) {
    return symbol.kind() == SizeAtom::Kind::Symbol && symbol.name() == symbolName;
  });
}

SizeExpr SizeExpr::replacingCalls(Replace replace) const {
  SizeExpr result;
  for (const auto &[monomial, coefficient] : terms) {
    SizeExpr term = coefficient;
    for (const SizeAtom &atom : monomial) {
      if (atom.kind() != SizeAtom::Kind::Call) {
        term = term * SizeExpr(atom);
        continue;
      }
      std::vector<SizeExpr> arguments;
      for (const SizeExpr &argument : atom.arguments())
        arguments.push_back(argument.replacingCalls(replace));
      auto replaced = replace(atom.name(), arguments);
      term = term * (replaced ? *replaced : build(atom.name(), arguments));
    }
    result = result + term;
  }
  return result;
}

std::string SizeExpr::str() const {
  if (terms.empty())
    return "0";
  std::string text;
  for (const auto &[monomial, coefficient] : inReadingOrder(*this)) {
    bool isLeast = coefficient == INT64_MIN, isNegative = coefficient < 0 && !isLeast;
    if (text.empty())
      text += isNegative ? "-" : "";
    else
      text += isNegative ? " - " : " + ";
    std::string factors;
    for (const SizeAtom &atom : monomial)
      factors += (factors.empty() ? "" : "*") + atom.text().str();
    // No literal is that large.
    std::string magnitude = isLeast ? "(-9223372036854775807 - 1)" : std::to_string(std::abs(coefficient));
    if (factors.empty())
      text += magnitude;
    else
      text += (magnitude == "1" ? "" : magnitude + "*") + factors;
  }
  return text;
}

/// As an atom, so that it does not take part in what surrounds it.
SizeExpr SizeExpr::unsimplified(const SizeExpr &size) { return call("max", {size, size}); }

std::optional<SizeExpr> SizeExpr::exactSum(const SizeExpr &a, const SizeExpr &b, int64_t factor) {
  SizeExpr result = a;
  for (const auto &[monomial, coefficient] : b.terms) {
    int64_t scaled;
    if (llvm::MulOverflow(coefficient, factor, scaled) || !result.addTerm(monomial, scaled))
      return std::nullopt;
  }
  return result;
}

SizeExpr operator+(const SizeExpr &a, const SizeExpr &b) {
  auto sum = SizeExpr::exactSum(a, b);
  return sum ? *sum : *SizeExpr::exactSum(SizeExpr::unsimplified(a), SizeExpr::unsimplified(b));
}

SizeExpr operator-(const SizeExpr &a, const SizeExpr &b) {
  auto sum = SizeExpr::exactSum(a, b, -1);
  return sum ? *sum : *SizeExpr::exactSum(SizeExpr::unsimplified(a), SizeExpr::unsimplified(b), -1);
}

std::optional<SizeExpr> SizeExpr::exactProduct(const SizeExpr &a, const SizeExpr &b) {
  // A product of many sums is kept as one atom per operand: written out it could exhaust the memory.
  constexpr size_t termLimit = 1024;
  if (a.terms.size() * b.terms.size() > termLimit)
    return std::nullopt;
  SizeExpr result;
  for (const auto &[left, leftCoefficient] : a.terms)
    for (const auto &[right, rightCoefficient] : b.terms) {
      Monomial merged;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(merged));
      int64_t coefficient;
      if (llvm::MulOverflow(leftCoefficient, rightCoefficient, coefficient) || !result.addTerm(merged, coefficient))
        return std::nullopt;
    }
  return result;
}

SizeExpr operator*(const SizeExpr &a, const SizeExpr &b) {
  if (auto product = SizeExpr::exactProduct(a, b))
    return *product;
  return *SizeExpr::exactProduct(SizeExpr::unsimplified(a), SizeExpr::unsimplified(b));
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
