// Whether one value is of its key's type and range.
#include "frontends/config/Values.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace ds::config {
using nlohmann::json;

static bool isNear(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

// Of the forms that Keys.def lists.
static bool isWithin(double value, std::string_view legal) {
  std::string text(legal.substr(0, legal.find(" or null")));
  if (text.empty())
    return true;
  if (text.rfind(">= ", 0) == 0)
    return value >= std::strtod(text.c_str() + 3, nullptr);
  if (text.rfind("> ", 0) == 0)
    return value > std::strtod(text.c_str() + 2, nullptr);
  char *comma = nullptr;
  double low = std::strtod(text.c_str() + 1, &comma), high = std::strtod(comma + 1, nullptr);
  return (text[0] == '(' ? value > low : value >= low) && (text.back() == ')' ? value < high : value <= high);
}

constexpr double largest = 9007199254740992.0; // 2^53: past it a double no longer tells neighbours apart

static bool asNumber(const KeySpec &key, const json &value, json &result) {
  if (!value.is_number())
    return false;
  auto number = value.get<double>();
  if (!std::isfinite(number) || !isWithin(number, key.legal))
    return false;
  result = number;
  if (key.type != KeyType::Int)
    return true;
  bool isWhole = number == std::floor(number) && std::abs(number) <= largest; // 5e8 is an integer
  if (isWhole)
    result = static_cast<int64_t>(number);
  return isWhole;
}

static bool asChoice(const KeySpec &key, const json &value, json &result) {
  if (!value.is_string())
    return false;
  auto text = value.get<std::string>();
  // Text that cannot be written as JSON again is no text.
  if (value.dump(-1, ' ', false, json::error_handler_t::ignore) !=
      value.dump(-1, ' ', false, json::error_handler_t::replace))
    return false;
  result = text;
  std::string_view legal = key.legal.substr(0, key.legal.find(" or null"));
  while (!legal.empty()) {
    std::string_view choice = legal.substr(0, legal.find('|'));
    if (isNear(choice, text)) {
      result = std::string(choice);
      return true;
    }
    legal.remove_prefix(std::min(legal.size(), choice.size() + 1));
  }
  return key.legal.empty() || key.legal[0] == ' ';
}

static bool asPair(const KeySpec &key, const JsonNode &node, json &result) {
  if (node.kind != JsonNode::Kind::List || node.parts.size() != 2)
    return false;
  result = json::array();
  for (const JsonNode &part : node.parts) {
    json number;
    if (part.kind != JsonNode::Kind::Scalar || !asNumber(key, part.scalar, number))
      return false;
    result.push_back(number);
  }
  return true;
}

static bool isLegal(const KeySpec &key, const JsonNode &node, json &result) {
  if (key.type == KeyType::Pair)
    return asPair(key, node, result);
  if (node.kind != JsonNode::Kind::Scalar)
    return false;
  if (node.scalar.is_null()) {
    result = nullptr;
    return key.legal.find(" or null") != std::string_view::npos;
  }
  switch (key.type) {
  case KeyType::Bool: result = node.scalar; return node.scalar.is_boolean();
  case KeyType::Int:
  case KeyType::Num: return asNumber(key, node.scalar, result);
  default: return asChoice(key, node.scalar, result);
  }
}

Checked checkValue(const KeySpec &key, const JsonNode &node) {
  Checked checked;
  if (isLegal(key, node, checked.value))
    return checked;
  checked.error = "found " + shown(node) + ", expected " + legalText(key);
  bool isOpenAbove = key.type == KeyType::Int && key.legal.rfind(">", 0) == 0;
  if (isOpenAbove && node.kind == JsonNode::Kind::Scalar && node.scalar.is_number() &&
      node.scalar.get<double>() > largest)
    checked.error += ", of 2^53 at most";
  return checked;
}

} // namespace ds::config
