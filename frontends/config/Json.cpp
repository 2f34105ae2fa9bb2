// nlohmann's parser tells no places, but it reads one token per event: its input counts the characters that it took,
// and what stands between two tokens is white space, commas and colons.
#include "frontends/config/Json.h"

#include <cstring>
#include <iterator>
#include <unordered_map>

namespace ds::config {
using nlohmann::json;

namespace {
constexpr size_t deepest = 32;

// An input of the parser that leaves behind how far it was read.
class Cursor {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  Cursor(const char *at, const char **furthest) : at(at), furthest(furthest) {}
  const char &operator*() const { return *at; }
  Cursor &operator++() {
    *furthest = ++at;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor &other) const { return at == other.at; }
  bool operator!=(const Cursor &other) const { return at != other.at; }

private:
  const char *at;
  const char **furthest;
};

// Lines and columns of offsets that only grow; a column is a character, not a byte.
class Counter {
public:
  explicit Counter(const std::string &text) : text(text) {}
  Place at(size_t offset) {
    for (; done < offset && done < text.size(); ++done) {
      if (text[done] == '\n')
        place = {place.line + 1, 1};
      else if ((text[done] & 0xC0) != 0x80)
        ++place.column;
    }
    return place;
  }

private:
  const std::string &text;
  size_t done = 0;
  Place place;
};

class Builder : public nlohmann::json_sax<json> {
public:
  Builder(const std::string &text, Problems &problems)
      : text(text), problems(problems), counter(text), furthest(text.data()) {}

  Cursor begin() { return {text.data(), &furthest}; }
  Cursor end() { return {text.data() + text.size(), &furthest}; }
  JsonNode take() { return std::move(root); }

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(value); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(value); }
  bool number_float(number_float_t value, const string_t &) override { return scalar(value); }
  bool string(string_t &value) override { return scalar(value); }
  bool binary(binary_t &) override { return false; }
  bool start_object(std::size_t) override { return open(JsonNode::Kind::Object); }
  bool start_array(std::size_t) override { return open(JsonNode::Kind::List); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &name) override {
    Place at = token();
    auto [found, isNew] = levels.back().seen.emplace(name, at);
    if (!isNew)
      problems.add(at, shownName(name), ": given twice, the first time in line ", std::to_string(found->second.line),
                   ", column ", std::to_string(found->second.column));
    levels.back().node->names.push_back({name, at});
    return !problems.isFull();
  }

  bool parse_error(std::size_t, const std::string &last, const nlohmann::detail::exception &error) override {
    size_t offset = static_cast<size_t>(furthest - text.data());
    Place at = counter.at(offset > 0 && offset <= text.size() ? offset - 1 : 0);
    problems.add(at, explain(last, error.what()));
    return false;
  }

private:
  struct Level {
    JsonNode *node;
    std::unordered_map<std::string, Place> seen;
  };

  // Where the token begins that was just read.
  Place token() {
    size_t from = past;
    if (from == 0 && text.compare(0, 3, "\xEF\xBB\xBF") == 0)
      from = 3;
    while (from < text.size() && std::strchr(" \t\r\n,:", text[from]) && text[from] != 0)
      ++from;
    past = static_cast<size_t>(furthest - text.data());
    return counter.at(from);
  }

  JsonNode &add(Place at) {
    JsonNode *node = &root;
    if (!levels.empty()) {
      levels.back().node->parts.emplace_back();
      node = &levels.back().node->parts.back();
    }
    node->at = at;
    return *node;
  }

  bool scalar(json value) {
    add(token()).scalar = std::move(value);
    return true;
  }

  bool open(JsonNode::Kind kind) {
    Place at = token();
    JsonNode &node = add(at);
    node.kind = kind;
    levels.push_back({&node, {}});
    if (levels.size() > deepest)
      problems.add(at, "nested too deeply, expected at most ", std::to_string(deepest), " levels");
    return levels.size() <= deepest;
  }

  bool close() {
    levels.pop_back();
    past = static_cast<size_t>(furthest - text.data());
    return true;
  }

  // The usual slips by name; otherwise the parser's own words without its prefixes and places.
  static std::string explain(const std::string &last, std::string what) {
    if (size_t at = what.find("] "); at != std::string::npos)
      what.erase(0, at + 2);
    if (size_t at = what.find(": "); what.rfind("parse error", 0) == 0 && at != std::string::npos)
      what.erase(0, at + 2);
    std::string hint;
    char end = last.empty() ? 0 : last.back();
    if ((end == '}' || end == ']') && what.find("unexpected '") != std::string::npos)
      hint = "; is there a comma too many before it?";
    else if (end == '/' || last.rfind("#", 0) == 0)
      hint = "; JSON has no comments";
    else if ((end == 'N' || end == 'I') && what.find("invalid literal") != std::string::npos)
      hint = "; JSON has no NaN and no infinity";
    for (char &c : what)
      c = c >= ' ' && c <= '~' ? c : '?';
    return "no JSON: " + (what.size() > 200 ? what.substr(0, 197) + "..." : what) + hint;
  }

  const std::string &text;
  Problems &problems;
  Counter counter;
  const char *furthest;
  size_t past = 0;
  JsonNode root;
  std::vector<Level> levels;
};
} // namespace

const JsonNode *JsonNode::find(std::string_view name) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].name == name)
      return &parts[i];
  return nullptr;
}

json JsonNode::json() const {
  if (kind == Kind::Scalar)
    return scalar;
  nlohmann::json value = isObject() ? nlohmann::json::object() : nlohmann::json::array();
  for (size_t i = 0; i < parts.size(); ++i)
    if (isObject())
      value[names[i].name] = parts[i].json();
    else
      value.push_back(parts[i].json());
  return value;
}

JsonNode parseJson(const std::string &text, Problems &problems) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    problems.add({}, "empty, expected a JSON object");
    return {};
  }
  Builder builder(text, problems);
  json::sax_parse(builder.begin(), builder.end(), &builder);
  return builder.take();
}

std::string shown(const json &value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::string shown(const JsonNode &node) { return shown(node.json()); }

std::string shownName(const std::string &name) {
  std::string text = json(name).dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  bool isPlain = text.size() == name.size() + 2 && !name.empty();
  text = isPlain ? name : text;
  return text.size() > 160 ? text.substr(0, 157) + "..." : text;
}

} // namespace ds::config
