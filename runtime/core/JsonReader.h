// Typed access to a JSON document in which every complaint names the place: "variants[0].entries[1].buffers[3].index".
#ifndef DEEPSTRIDE_RUNTIME_CORE_JSONREADER_H
#define DEEPSTRIDE_RUNTIME_CORE_JSONREADER_H

#include "runtime/core/Error.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace ds {

class JsonReader {
public:
  JsonReader(const nlohmann::json &value, std::string path) : value(&value), path(std::move(path)) {}

  template <typename... Parts> [[noreturn]] void refuse(const Parts &...what) const {
    fail(ErrorCode::BadPackage, path.empty() ? "document" : path, ": ", what...);
  }

  bool isNull() const { return value->is_null(); }
  bool isString() const { return value->is_string(); }

  bool has(const char *key) const {
    requireObject();
    return value->contains(key);
  }

  JsonReader operator[](const char *key) const {
    requireObject();
    auto found = value->find(key);
    std::string place = path.empty() ? key : path + "." + key;
    if (found == value->end())
      fail(ErrorCode::BadPackage, place, ": missing");
    return JsonReader(*found, place);
  }

  // The value as JSON text.
  std::string text() const { return value->dump(); }

  std::string string() const {
    if (!value->is_string())
      refuse("found ", shown(), ", expected a string");
    return value->get<std::string>();
  }

  bool boolean() const {
    if (!value->is_boolean())
      refuse("found ", shown(), ", expected true or false");
    return value->get<bool>();
  }

  // An integer in [low, high].
  int64_t integer(int64_t low = std::numeric_limits<int64_t>::min(),
                  int64_t high = std::numeric_limits<int64_t>::max()) const {
    bool fits = value->is_number_integer() &&
                !(value->is_number_unsigned() &&
                  value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
    if (!fits)
      refuse("found ", shown(), ", expected an integer");
    int64_t number = value->get<int64_t>();
    if (number < low || number > high)
      refuse("out of range, found ", number, ", expected ", low, " to ", high);
    return number;
  }

  // An index into a list of the given length.
  uint32_t index(size_t length, const char *what) const {
    int64_t number = integer(0);
    if (static_cast<uint64_t>(number) >= length)
      refuse("index out of range, found ", number, ", expected one of ", length, " ", what);
    return static_cast<uint32_t>(number);
  }

  template <typename Action> void forEach(Action action) const {
    if (!value->is_array())
      refuse("found ", shown(), ", expected a list");
    for (size_t i = 0; i < value->size(); ++i)
      action(JsonReader((*value)[i], path + "[" + std::to_string(i) + "]"));
  }

  template <typename Action> void forEachMember(Action action) const {
    requireObject();
    for (auto it = value->begin(); it != value->end(); ++it)
      action(it.key(), JsonReader(it.value(), path + "." + it.key()));
  }

  std::string shown() const {
    std::string text = value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  }

private:
  void requireObject() const {
    if (!value->is_object())
      refuse("found ", shown(), ", expected an object");
  }

  const nlohmann::json *value;
  std::string path;
};

} // namespace ds
#endif
