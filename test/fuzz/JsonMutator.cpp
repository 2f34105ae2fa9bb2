#include "test/fuzz/JsonMutator.h"

#include <nlohmann/json.hpp>
#include <vector>

using nlohmann::json;

namespace deepstride::fuzz {

namespace {

void collect(json &value, std::vector<json *> &values) {
  values.push_back(&value);
  if (value.is_structured())
    for (json &part : value)
      collect(part, values);
}

/// A size expression, well formed or nearly so.
std::string expression(Random &random, unsigned depth = 0) {
  static const char *const names[] = {"n", "batch", "seq", "x[0]", "`a b`", "-1", "9223372036854775807", "0", "3"};
  static const char *const functions[] = {"floordiv", "ceildiv", "mod", "min", "max", "eq", "lt", "select", "sin"};
  if (depth > 6 || random.oneIn(3))
    return random.oneIn(2) ? names[random.below(std::size(names))] : std::to_string(random.integer());
  std::string a = expression(random, depth + 1), b = expression(random, depth + 1);
  if (random.oneIn(2))
    return "(" + a + "+-*"[random.below(3)] + b + ")";
  const char *name = functions[random.below(std::size(functions))];
  return std::string(name) + "(" + a + "," + b + (name[0] == 's' ? "," + expression(random, depth + 1) : "") + ")";
}

void mutateValue(json &value, std::vector<json *> &values, Random &random) {
  switch (random.below(8)) {
  case 0: value = json(*values[random.below(values.size())]); return; // a copy of what stands elsewhere
  case 1: value = random.integer(); return;
  case 2: value = expression(random); return;
  case 3:
    if (value.is_structured() && !value.empty()) {
      auto at = value.begin();
      std::advance(at, random.below(value.size()));
      value.erase(at);
      return;
    }
    break;
  case 4:
    if (value.is_array() && !value.empty()) {
      value.push_back(json(value[random.below(value.size())]));
      return;
    }
    break;
  case 5:
    if (random.oneIn(4)) {
      const json others[] = {nullptr, true, 0.5, json::array(), json::object(), "", uint64_t(-1)};
      value = others[random.below(std::size(others))];
      return;
    }
    break;
  default: break;
  }
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    random.mutate(text);
    value = text;
  } else if (value.is_number_integer()) {
    value = static_cast<int64_t>(value.get<uint64_t>() + random.below(5) - 2);
  }
}

} // namespace

void mutateJson(std::string &text, Random &random) {
  json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (random.oneIn(24) || document.is_discarded())
    return random.mutate(text);
  for (size_t left = 1 + random.below(4); left > 0; --left) {
    std::vector<json *> values;
    collect(document, values);
    mutateValue(*values[random.below(values.size())], values, random);
  }
  text = document.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace deepstride::fuzz
