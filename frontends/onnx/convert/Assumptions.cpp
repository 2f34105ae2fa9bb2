// Conditions are polynomials of comparisons: eq(a, b) and lt(a, b) say in which range a - b lies; a product is a
// conjunction, a maximum a disjunction, 1 - x a negation. Ranges are kept per polynomial; what this does not find out
// costs an outcome that never happens, never a wrong one.
#include "frontends/onnx/convert/Assumptions.h"

#include "llvm/ADT/StringExtras.h"

namespace deepstride::onnx {

/// Numbers beyond this are left alone, so that nothing overflows.
static constexpr int64_t limit = int64_t(1) << 60;

static bool isSmall(int64_t value) { return value >= -limit && value <= limit; }

/// A symbol or an element as a size. How wide an element is does not matter here.
static SizeExpr sizeOf(const SizeAtom &symbol) {
  switch (symbol.kind()) {
  case SizeAtom::Kind::Symbol: return SizeExpr::symbol(symbol.name());
  case SizeAtom::Kind::Element: return SizeExpr::element(symbol.name(), symbol.index());
  default: return SizeExpr::unknown(symbol.name());
  }
}

/// A size with numbers in the place of symbols; nothing where it holds calls that cannot be made anew.
static std::optional<SizeExpr> substitute(const SizeExpr &size, const std::map<SizeAtom, int64_t> &values) {
  SizeExpr result;
  for (const auto &[monomial, coefficient] : size.polynomial()) {
    SizeExpr term = coefficient;
    for (const SizeAtom &atom : monomial) {
      if (atom.kind() != SizeAtom::Kind::Call) {
        auto known = values.find(atom);
        term = term * (known == values.end() ? sizeOf(atom) : SizeExpr(known->second));
        continue;
      }
      // The call is made by parsing it with names for its arguments.
      llvm::StringMap<SizeExpr> arguments;
      std::string names;
      for (const SizeExpr &argument : atom.arguments()) {
        auto value = substitute(argument, values);
        if (!value)
          return std::nullopt;
        std::string name = "a" + std::to_string(arguments.size());
        names += (names.empty() ? "" : ", ") + name;
        arguments[name] = *value;
      }
      auto call = SizeExpr::parse((atom.name() + "(" + names + ")").str(), &arguments);
      if (!call)
        return std::nullopt;
      term = term * *call;
    }
    result = result + term;
  }
  return result;
}

/// The atoms of a condition that is one product of them; none for anything else.
static SizeExpr::Monomial factorsOf(const SizeExpr &condition) {
  const auto &terms = condition.polynomial();
  return terms.size() == 1 && terms.begin()->second == 1 ? terms.begin()->first : SizeExpr::Monomial();
}

/// True for 1 - x, of a condition x.
static bool isNegation(const SizeExpr &condition) {
  auto constant = condition.polynomial().find({});
  return constant != condition.polynomial().end() && constant->second == 1 && condition.polynomial().size() > 1;
}

std::optional<Assumptions::Form> Assumptions::formOf(const SizeExpr &difference) {
  auto found = difference.polynomial().find({});
  int64_t constant = found == difference.polynomial().end() ? 0 : found->second;
  SizeExpr sum = difference - SizeExpr(constant);
  if (sum.constant() || !isSmall(constant))
    return std::nullopt;
  bool isNegative = sum.polynomial().begin()->second < 0;
  return Form{isNegative ? SizeExpr(0) - sum : sum, constant, isNegative ? -1 : 1};
}

Assumptions::Range &Assumptions::rangeOf(const SizeExpr &sum) {
  auto [entry, isNew] = ranges.try_emplace(sum.str());
  if (isNew && sum.isKnownNonNegative())
    entry->second.low = 0;
  return entry->second;
}

/// What is known of a difference; nothing where it has no form.
std::optional<Assumptions::Range> Assumptions::rangeOfDifference(const SizeExpr &difference) const {
  auto form = formOf(difference);
  if (!form)
    return std::nullopt;
  Range range;
  if (auto known = ranges.find(form->sum.str()); known != ranges.end())
    range = known->second;
  else if (form->sum.isKnownNonNegative())
    range.low = 0;
  Range result;
  auto place = [&](int64_t value) { return form->sign * value + form->constant; };
  if (isSmall(range.low))
    (form->sign > 0 ? result.low : result.high) = place(range.low);
  if (isSmall(range.high))
    (form->sign > 0 ? result.high : result.low) = place(range.high);
  for (int64_t value : range.excluded)
    result.excluded.insert(place(value));
  return result;
}

void Assumptions::settle(const SizeExpr &sum, Range &range) {
  while (range.low < range.high && range.excluded.count(range.low))
    ++range.low;
  while (range.low < range.high && range.excluded.count(range.high))
    --range.high;
  const SizeAtom *atom = sum.asAtom();
  if (range.low == range.high && atom && atom->kind() != SizeAtom::Kind::Call)
    values[*atom] = range.low;
}

/// low <= difference <= high.
void Assumptions::restrict(const SizeExpr &difference, int64_t low, int64_t high) {
  auto form = formOf(difference);
  if (!form)
    return;
  Range &range = rangeOf(form->sum);
  auto place = [&](int64_t value) { return form->sign * (value - form->constant); };
  if (isSmall(low))
    form->sign > 0 ? (void)(range.low = std::max(range.low, place(low)))
                   : (void)(range.high = std::min(range.high, place(low)));
  if (isSmall(high))
    form->sign > 0 ? (void)(range.high = std::min(range.high, place(high)))
                   : (void)(range.low = std::max(range.low, place(high)));
  settle(form->sum, range);
}

/// The difference is not 0.
void Assumptions::exclude(const SizeExpr &difference) {
  auto form = formOf(difference);
  if (!form)
    return;
  Range &range = rangeOf(form->sum);
  range.excluded.insert(-form->sign * form->constant);
  settle(form->sum, range);
}

void Assumptions::learn(const SizeExpr &condition, bool holds) {
  if (isNegation(condition))
    return learn(SizeExpr(1) - condition, !holds);
  SizeExpr::Monomial factors = factorsOf(condition);
  if (holds || factors.size() == 1)
    for (const SizeAtom &factor : factors)
      learn(factor, holds);
}

void Assumptions::learn(const SizeAtom &atom, bool holds) {
  llvm::ArrayRef<SizeExpr> arguments = atom.arguments();
  if (atom.kind() != SizeAtom::Kind::Call) // an input of one bool
    return restrict(sizeOf(atom), holds, holds);
  if (atom.name() == "eq")
    return holds ? restrict(arguments[0] - arguments[1], 0, 0) : exclude(arguments[0] - arguments[1]);
  if (atom.name() == "lt")
    return restrict(arguments[0] - arguments[1], holds ? INT64_MIN : 0, holds ? -1 : INT64_MAX);
  if (atom.name() == "max" && !holds)
    for (const SizeExpr &part : arguments)
      learn(part, false);
}

void Assumptions::add(const SizeExpr &condition, bool holds) {
  items.push_back({condition, holds});
  learn(condition, holds);
}

void Assumptions::bound(const SizeExpr &size, int64_t low, int64_t high) { restrict(size, low, high); }

/// Whether one part is `decisive`, or none is.
template <typename Parts, typename Follow>
static std::optional<bool> combine(const Parts &parts, bool decisive, Follow follow) {
  bool isOpen = false;
  for (const auto &part : parts) {
    std::optional<bool> known = follow(part);
    if (known == decisive)
      return decisive;
    isOpen |= !known;
  }
  return isOpen ? std::nullopt : std::optional(!decisive);
}

std::optional<bool> Assumptions::follow(const SizeExpr &condition) const {
  if (auto known = condition.constant())
    return *known != 0;
  for (const Item &item : items)
    if (item.condition == condition)
      return item.holds;
  if (isNegation(condition)) {
    auto inner = follow(SizeExpr(1) - condition);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  SizeExpr::Monomial factors = factorsOf(condition);
  if (factors.empty())
    return std::nullopt;
  return combine(factors, false, [&](const SizeAtom &factor) { return follow(factor); });
}

std::optional<bool> Assumptions::follow(const SizeAtom &atom) const {
  for (const Item &item : items)
    if (const SizeAtom *assumed = item.condition.asAtom(); assumed && *assumed == atom)
      return item.holds;
  llvm::ArrayRef<SizeExpr> arguments = atom.arguments();
  bool isCall = atom.kind() == SizeAtom::Kind::Call, isEqual = isCall && atom.name() == "eq";
  if (isCall && atom.name() == "max")
    return combine(arguments, true, [&](const SizeExpr &part) { return follow(part); });
  if (!isEqual && !(isCall && atom.name() == "lt"))
    return std::nullopt;
  auto range = rangeOfDifference(arguments[0] - arguments[1]);
  if (!range)
    return std::nullopt;
  if (isEqual ? range->low > 0 || range->high < 0 || range->excluded.count(0) : range->low >= 0)
    return false;
  if (isEqual ? range->low == 0 && range->high == 0 : range->high < 0)
    return true;
  return std::nullopt;
}

std::optional<bool> Assumptions::implied(const SizeExpr &condition) const {
  // What a symbol is known to be may say more than the form of the condition.
  if (auto found = follow(condition))
    return found;
  auto known = substitute(condition, values);
  return known ? follow(*known) : std::nullopt;
}

std::optional<int64_t> Assumptions::valueOf(const SizeExpr &symbol) const {
  const SizeAtom *atom = symbol.asAtom();
  auto known = atom ? values.find(*atom) : values.end();
  return known == values.end() ? std::nullopt : std::optional(known->second);
}

std::string describe(llvm::ArrayRef<Assumptions::Item> items) {
  std::string text;
  for (const Assumptions::Item &item : items)
    text += (text.empty() ? "" : " and ") + item.condition.brief() + (item.holds ? " holds" : " does not hold");
  return text;
}

} // namespace deepstride::onnx
