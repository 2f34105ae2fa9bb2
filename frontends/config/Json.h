// A JSON document with the place of every key and value, which messages name.
#ifndef DEEPSTRIDE_FRONTENDS_CONFIG_JSON_H
#define DEEPSTRIDE_FRONTENDS_CONFIG_JSON_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ds::config {

struct Place {
  int line = 1, column = 1;
};

struct Problem {
  Place at;
  std::string text;
};

// Errors of one file; past a screenful nobody reads on.
class Problems {
public:
  template <typename... Parts> void add(Place at, const Parts &...parts) {
    std::string text;
    (text.append(parts), ...);
    if (!isFull())
      list.push_back({at, std::move(text)});
  }
  bool isFull() const { return list.size() >= 20; }
  bool empty() const { return list.empty(); }
  const std::vector<Problem> &all() const { return list; }

private:
  std::vector<Problem> list;
};

struct JsonNode {
  enum class Kind : uint8_t { Scalar, List, Object } kind = Kind::Scalar;
  Place at;
  nlohmann::json scalar;
  struct Key {
    std::string name;
    Place at;
  };
  std::vector<Key> names;      // of an object
  std::vector<JsonNode> parts; // of a list or an object

  bool isObject() const { return kind == Kind::Object; }
  const JsonNode *find(std::string_view name) const;
  nlohmann::json json() const;
};

// Duplicate keys and whatever is no JSON become problems; the node is complete when there are none.
JsonNode parseJson(const std::string &text, Problems &problems);

// A value as a message shows it: one line, not too long.
std::string shown(const JsonNode &node);
std::string shown(const nlohmann::json &value);
// A name from a file, in plain ASCII.
std::string shownName(const std::string &name);

} // namespace ds::config
#endif
