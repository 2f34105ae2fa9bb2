#include "runtime/core/Guards.h"

#include "runtime/core/Error.h"

#include <algorithm>

namespace ds {
namespace {

bool hasDimension(const EntryInfo &entry, const std::string &name) {
  return std::any_of(entry.symbols.begin(), entry.symbols.end(),
                     [&](const SymbolInfo &symbol) { return symbol.kind == SymbolKind::Dim && symbol.name == name; });
}

std::vector<bool> symbolsOfGuards(const EntryInfo &entry) {
  std::vector<bool> used(entry.symbols.size(), false);
  for (const GuardInfo &guard : entry.guards)
    for (uint32_t symbol : guard.condition.symbols())
      used[symbol] = true;
  return used;
}

} // namespace

std::vector<size_t> entriesOf(const VariantInfo &variant, size_t index) {
  const EntryGroup &group = variant.groupOf(index);
  return index == group.entries[0] ? group.entries : std::vector<size_t>{index};
}

Pins pinsOfEntry(const VariantInfo &variant, size_t entry, const Pins &pins) {
  Pins result;
  for (const auto &[name, value] : pins) {
    bool isElsewhere = false;
    for (size_t other : variant.groupOf(entry).entries)
      isElsewhere |= hasDimension(variant.entries[other], name);
    if (!isElsewhere || hasDimension(variant.entries[entry], name)) // what no entry has is refused by name
      result[name] = value;
  }
  return result;
}

// In order: a later condition may be meaningless where an earlier one does not hold.
bool guardsHold(const EntryInfo &entry, const std::vector<int64_t> &values) {
  return std::all_of(entry.guards.begin(), entry.guards.end(),
                     [&](const GuardInfo &guard) { return (guard.condition.evaluate(values) != 0) == guard.holds; });
}

std::string guardsText(const EntryInfo &entry) {
  std::string text;
  for (const GuardInfo &guard : entry.guards)
    text += (text.empty() ? "" : " and ") + std::string(guard.holds ? "" : "not ") + guard.condition.text();
  return text;
}

size_t chooseEntry(const VariantInfo &variant, size_t index, const std::vector<TensorView> &inputs, const Pins &pins) {
  if (variant.entries[index].guards.empty() && variant.groupOf(index).entries.size() == 1)
    return index;
  std::string expected;
  std::map<std::string, int64_t> found;
  for (size_t candidate : entriesOf(variant, index)) {
    const EntryInfo &entry = variant.entries[candidate];
    std::vector<bool> used = symbolsOfGuards(entry);
    std::vector<int64_t> values = bindSymbols(entry, inputs, pinsOfEntry(variant, candidate, pins), &used);
    if (annotated("guards of '" + entry.name + "'", [&] { return guardsHold(entry, values); }))
      return candidate;
    for (size_t symbol = 0; symbol < used.size(); ++symbol)
      if (used[symbol])
        found[entry.symbols[symbol].name] = values[symbol];
    expected += (expected.empty() ? "" : ", or ") + guardsText(entry);
  }
  std::string values;
  for (const auto &[name, value] : found)
    values += concat(values.empty() ? "" : ", ", name, " = ", value);
  fail(ErrorCode::ShapeMismatch, "compiled for other sizes and inputs: found ", values, ", expected ", expected);
}

} // namespace ds
