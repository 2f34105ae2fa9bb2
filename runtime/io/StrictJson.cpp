#include "runtime/io/StrictJson.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace ds {
namespace {

using nlohmann::json;

constexpr unsigned maxDepth = 64;

void appendUtf8(std::string &text, uint32_t code) {
  auto tail = [&](unsigned shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

class Parser {
public:
  explicit Parser(std::string_view text) : text(text) {}

  json run() {
    json result = value(0);
    skip();
    if (at < text.size())
      refuse("expected the end, found ", shown());
    return result;
  }

private:
  template <typename... Parts> [[noreturn]] void refuse(const Parts &...what) const { refuseAt(at, what...); }

  template <typename... Parts> [[noreturn]] void refuseAt(size_t place, const Parts &...what) const {
    size_t line = 1, begin = 0;
    for (size_t i = 0; i < place; ++i)
      if (text[i] == '\n') {
        ++line;
        begin = i + 1;
      }
    fail(ErrorCode::BadFile, line, ":", place - begin + 1, ": ", what...);
  }

  // What stands here, for messages.
  std::string shown() const {
    if (at >= text.size())
      return "the end";
    unsigned char c = static_cast<unsigned char>(text[at]);
    if (c > 0x20 && c < 0x7F)
      return concat("'", text[at], "'");
    const char *digits = "0123456789abcdef";
    return concat("byte 0x", digits[c >> 4], digits[c & 15]);
  }

  void skip() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r'))
      ++at;
  }
  bool take(char c) {
    skip();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  json value(unsigned depth) {
    skip();
    char c = at < text.size() ? text[at] : '\0';
    if ((c == '{' || c == '[') && depth == maxDepth)
      refuse("nested deeper than ", maxDepth);
    switch (c) {
    case '{': return object(depth + 1);
    case '[': return list(depth + 1);
    case '"': return string();
    case 't': return word("true", true);
    case 'f': return word("false", false);
    case 'n': return word("null", nullptr);
    default: return number();
    }
  }

  json word(std::string_view expected, json meaning) {
    if (text.substr(at, expected.size()) != expected)
      refuse("expected a value, found ", shown());
    at += expected.size();
    return meaning;
  }

  json object(unsigned depth) {
    json::object_t members;
    ++at;
    if (take('}'))
      return members;
    do {
      skip();
      size_t place = at;
      if (at >= text.size() || text[at] != '"')
        refuse("expected a name in quotes, found ", shown());
      std::string name = string();
      if (!take(':'))
        refuse("expected ':', found ", shown());
      if (!members.emplace(name, nullptr).second)
        refuseAt(place, "name ", inQuotes(name), " occurs twice");
      members[name] = value(depth);
    } while (take(','));
    if (!take('}'))
      refuse("expected ',' or '}', found ", shown());
    return members;
  }

  json list(unsigned depth) {
    json::array_t values;
    ++at;
    if (take(']'))
      return values;
    do
      values.push_back(value(depth));
    while (take(','));
    if (!take(']'))
      refuse("expected ',' or ']', found ", shown());
    return values;
  }

  std::string string() {
    std::string result;
    size_t begin = at++;
    while (true) {
      if (at >= text.size())
        refuseAt(begin, "string without end");
      unsigned char c = static_cast<unsigned char>(text[at]);
      if (c == '"') {
        ++at;
        return result;
      }
      if (c < 0x20)
        refuse("expected \\u00", c >> 4, "0123456789abcdef"[c & 15], " for the control character, found it as it is");
      if (c == '\\') {
        escape(result);
        continue;
      }
      size_t length = utf8Length(text.substr(at));
      if (length == 0)
        refuse("invalid UTF-8");
      result.append(text, at, length);
      at += length;
    }
  }

  void escape(std::string &result) {
    size_t begin = at++;
    char c = at < text.size() ? text[at++] : '\0';
    const char *names = "\"\\/bfnrt", *meanings = "\"\\/\b\f\n\r\t";
    if (const char *found = c ? std::strchr(names, c) : nullptr) {
      result += meanings[found - names];
      return;
    }
    if (c != 'u')
      refuseAt(begin, "unknown escape");
    uint32_t code = hex(begin);
    if (code >= 0xD800 && code < 0xDC00) {
      bool isPair = text.substr(at, 2) == "\\u";
      at += isPair ? 2 : 0;
      uint32_t low = isPair ? hex(begin) : 0;
      if (low < 0xDC00 || low > 0xDFFF)
        refuseAt(begin, "half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      refuseAt(begin, "half of a surrogate pair");
    }
    appendUtf8(result, code);
  }

  uint32_t hex(size_t begin) {
    uint32_t code = 0;
    std::string_view digits = text.substr(at, 4);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4)
      refuseAt(begin, "expected four hex digits after \\u");
    at += 4;
    return code;
  }

  size_t digits() {
    size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
      ++at;
    return at - begin;
  }

  json number() {
    size_t begin = at;
    bool isNegative = at < text.size() && text[at] == '-';
    at += isNegative;
    size_t first = at, count = digits();
    if (count == 0)
      refuseAt(begin, "expected a value, found ", shown());
    if (count > 1 && text[first] == '0')
      refuseAt(begin, "number with a leading zero");
    bool isInteger = true;
    auto part = [&] {
      isInteger = false;
      if (digits() == 0)
        refuse("expected a digit, found ", shown());
    };
    if (at < text.size() && text[at] == '.') {
      ++at;
      part();
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
      ++at;
      if (at < text.size() && (text[at] == '+' || text[at] == '-'))
        ++at;
      part();
    }
    std::string_view digitsOf = text.substr(begin, at - begin);
    return isInteger ? integer(digitsOf, begin, isNegative) : real(digitsOf, begin);
  }

  json integer(std::string_view spelled, size_t begin, bool isNegative) const {
    const char *end = spelled.data() + spelled.size();
    int64_t number = 0;
    uint64_t positive = 0;
    if (std::from_chars(spelled.data(), end, number).ec == std::errc())
      return spelled == "-0" ? json(-0.0) : json(number);
    if (isNegative || std::from_chars(spelled.data(), end, positive).ec != std::errc())
      refuseAt(begin, "integer does not fit 64 bits");
    return positive;
  }

  json real(std::string_view spelled, size_t begin) const {
    double number = 0;
    auto error = std::from_chars(spelled.data(), spelled.data() + spelled.size(), number).ec;
    // Out of range may mean too small as well, which every other reader takes as zero or the least of its numbers.
    if (error == std::errc::result_out_of_range)
      number = std::strtod(std::string(spelled).c_str(), nullptr);
    if (!std::isfinite(number))
      refuseAt(begin, "number does not fit a double");
    return number;
  }

  std::string_view text;
  size_t at = 0;
};

void checkWritable(const json &value, const std::string &place, unsigned depth) {
  auto refuse = [&](const char *what) {
    fail(ErrorCode::InvalidArgument, place.empty() ? "the value" : place, ": ", what);
  };
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    refuse("JSON has no NaN and no infinity");
  if (value.is_string() && !isUtf8(value.get_ref<const std::string &>()))
    refuse("invalid UTF-8");
  if (value.is_binary() || value.is_discarded())
    refuse("JSON has no binary values");
  if (value.is_structured() && depth == maxDepth)
    refuse("nested deeper than 64");
  if (value.is_object())
    for (auto it = value.begin(); it != value.end(); ++it) {
      if (!isUtf8(it.key()))
        refuse("a name in it is invalid UTF-8");
      checkWritable(it.value(), place.empty() ? it.key() : place + "." + it.key(), depth + 1);
    }
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      checkWritable(value[i], place + "[" + std::to_string(i) + "]", depth + 1);
}

} // namespace

json parseStrictJson(std::string_view text) { return Parser(text).run(); }

std::string writeStrictJson(const json &value, int indent) {
  checkWritable(value, "", 0);
  return value.dump(indent);
}

} // namespace ds
