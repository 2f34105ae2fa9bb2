// Conditions are polynomials of comparisons: eq(a, b) and lt(a, b) say in which range a - b lies; a product is a
// conjunction, a maximum a disjunction, 1 - x a negation. Ranges are kept per polynomial; what this does not find out
// costs an outcome that never happens, never a wrong one.
#include "frontends/onnx/convert/Assumptions.h"

#include "llvm/ADT/StringExtras.h"

namespace deepstride::onnx {

/// Numbers beyond this are left alone, so that nothing overflows.
static constexpr int64_t limit = int64_t(1) << 60;

static bool isSmall(int64_t value) { return value >= -limit && value <= limit; }

/// The arguments of a call in the text of an atom; none for anything else.
static std::vector<SizeExpr> argumentsOf(llvm::StringRef atom, llvm::StringRef function) {
  std::vector<SizeExpr> arguments;
  if (!atom.consume_front(function) || !atom.consume_front("(") || !atom.consume_back(")"))
    return arguments;
  bool isQuoted = false;
  int depth = 0;
  for (size_t begin = 0, i = 0; i <= atom.size(); ++i) {
    if (i < atom.size()) {
      isQuoted ^= atom[i] == '`';
      if (!isQuoted)
        depth += atom[i] == '(' ? 1 : atom[i] == ')' ? -1 : 0;
      if (isQuoted || depth > 0 || atom[i] != ',')
        continue;
    }
    auto argument = SizeExpr::parse(atom.slice(begin, i));
    if (!argument)
      return {};
    arguments.push_back(*argument);
    begin = i + 1;
  }
  return arguments;
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
  auto symbols = sum.symbols();
  if (range.low == range.high && symbols.size() == 1 && sum == SizeExpr::symbol(symbols[0]))
    values[symbols[0]] = range.low;
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
  if (factors.size() > 1 && holds)
    for (const std::string &factor : factors)
      learn(*SizeExpr::parse(factor), true);
  if (factors.size() != 1)
    return;
  if (auto compared = argumentsOf(factors[0], "eq"); compared.size() == 2)
    return holds ? restrict(compared[0] - compared[1], 0, 0) : exclude(compared[0] - compared[1]);
  if (auto compared = argumentsOf(factors[0], "lt"); compared.size() == 2)
    return restrict(compared[0] - compared[1], holds ? INT64_MIN : 0, holds ? -1 : INT64_MAX);
  if (auto parts = argumentsOf(factors[0], "max"); !holds)
    for (const SizeExpr &part : parts)
      learn(part, false);
  if (!llvm::StringRef(factors[0]).ends_with(")"))
    restrict(condition, holds, holds); // an input of one bool
}

void Assumptions::add(const SizeExpr &condition, bool holds) {
  items.push_back({condition, holds});
  learn(condition, holds);
}

void Assumptions::bound(llvm::StringRef symbol, int64_t low, int64_t high) {
  restrict(SizeExpr::symbol(symbol), low, high);
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
  /// Whether one part is `decisive`, or none is.
  auto combine = [&](auto &&parts, bool decisive) -> std::optional<bool> {
    bool isOpen = false;
    for (const SizeExpr &part : parts) {
      auto known = follow(part);
      if (known == decisive)
        return decisive;
      isOpen |= !known;
    }
    return isOpen ? std::nullopt : std::optional(!decisive);
  };
  SizeExpr::Monomial factors = factorsOf(condition);
  if (factors.size() > 1)
    return combine(llvm::map_range(factors, [](const std::string &factor) { return *SizeExpr::parse(factor); }), false);
  if (factors.empty())
    return std::nullopt;
  if (auto parts = argumentsOf(factors[0], "max"); !parts.empty())
    return combine(parts, true);
  bool isEqual = llvm::StringRef(factors[0]).starts_with("eq(");
  auto compared = argumentsOf(factors[0], isEqual ? "eq" : "lt");
  auto range = compared.size() == 2 ? rangeOfDifference(compared[0] - compared[1]) : std::nullopt;
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
  auto known = SizeExpr::parse(condition.str(), &values);
  if (auto found = follow(condition))
    return found;
  return known ? follow(*known) : std::nullopt;
}

std::optional<int64_t> Assumptions::valueOf(llvm::StringRef symbol) const {
  auto known = values.find(symbol);
  return known == values.end() ? std::nullopt : known->second.constant();
}

std::string describe(llvm::ArrayRef<Assumptions::Item> items) {
  std::string text;
  for (const Assumptions::Item &item : items)
    text += (text.empty() ? "" : " and ") + item.condition.brief() + (item.holds ? " holds" : " does not hold");
  return text;
}

} // namespace deepstride::onnx
