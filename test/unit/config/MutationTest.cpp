// Whatever is changed in a file: an error says so, or the configuration has every key of the file with its value.
#include "test/unit/config/Support.h"
#include "test/unit/support/Seed.h"

#include <nlohmann/json.hpp>
#include <random>
#include <set>

using namespace ds::config;
using namespace ds::config::test;
using nlohmann::json;

namespace {
class Mutator {
public:
  explicit Mutator(uint32_t seed) : engine(seed) {}

  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine); }

  std::string mutate(const std::string &text) {
    json document = json::parse(text);
    std::string result = text;
    for (size_t left = 1 + below(3); left > 0; --left)
      if (below(3) == 0)
        return editText(left == 1 ? result : document.dump(2));
      else
        result = editDocument(document);
    return result;
  }

private:
  std::string editDocument(json &document) {
    std::vector<json *> objects;
    collect(document, objects);
    json &object = *objects[below(objects.size())];
    if (object.empty())
      return document.dump(2);
    auto at = object.begin();
    std::advance(at, below(object.size()));
    std::string key = at.key();
    json value = at.value();
    switch (below(5)) {
    case 0:
      object.erase(key);
      object[rename(key)] = value;
      break;
    case 1:
    case 2: object[key] = otherValue(); break;
    case 3: object.erase(key); break;
    case 4: (*objects[below(objects.size())])[key] = value; break; // in another section
    }
    return document.dump(2);
  }

  static void collect(json &value, std::vector<json *> &objects) {
    if (!value.is_object())
      return;
    objects.push_back(&value);
    for (json &part : value)
      collect(part, objects);
  }

  std::string rename(std::string key) {
    switch (below(3)) {
    case 0: key.erase(below(key.size()), 1); break;
    case 1: key.insert(below(key.size()), 1, static_cast<char>('a' + below(26))); break;
    case 2: key[below(key.size())] = static_cast<char>(below(256)); break;
    }
    // Bytes that are no UTF-8 cannot stand in nlohmann's documents; the editor of texts makes them.
    for (char &c : key)
      c = static_cast<char>(c & 0x7F);
    return key;
  }

  json otherValue() {
    static const std::vector<json> values = {nullptr,
                                             true,
                                             false,
                                             0,
                                             1,
                                             -1,
                                             0.5,
                                             2,
                                             1e300,
                                             -1e300,
                                             1e9,
                                             64,
                                             "",
                                             "Adam",
                                             "sgd",
                                             "OneCycle",
                                             "auto",
                                             json::array(),
                                             {0.5, 0.5},
                                             json::object(),
                                             {{"enabled", true}},
                                             {{"enabled", false}},
                                             {{"type", "SGD"}},
                                             3,
                                             4096};
    return values[below(values.size())];
  }

  std::string editText(std::string text) {
    size_t from = below(text.size()), length = std::min(text.size() - from, 1 + below(20));
    switch (below(4)) {
    case 0: text.erase(from, length); break;
    case 1: text.insert(below(text.size()), text.substr(from, length)); break; // duplicates a part
    case 2: text[from] = static_cast<char>(below(256)); break;
    case 3: text.insert(from, 1, "{}[],:\"0e-."[below(11)]); break;
    }
    return text;
  }

  std::mt19937 engine;
};

using Leaves = std::map<std::string, json>;

void leaves(const json &value, const std::string &path, Leaves &result) {
  if (!value.is_object() || value.empty()) {
    result[path] = value;
    return;
  }
  for (auto it = value.begin(); it != value.end(); ++it)
    leaves(it.value(), path.empty() ? it.key() : path + "." + it.key(), result);
}

bool isSame(const json &file, const json &entry) {
  if (file.is_string() && entry.is_string()) { // choices are spelled as the table does
    auto lower = [](std::string text) {
      for (char &c : text)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return text;
    };
    return lower(file.get<std::string>()) == lower(entry.get<std::string>());
  }
  return file == entry;
}

// A value of the file, in an entry of its own or of the section that is taken as a whole.
bool isAccountedFor(const TrainingConfig &config, const std::string &path, const json &value) {
  if (const Entry *entry = config.find(path))
    return entry->line > 0 && (isSame(value, json::parse(entry->value)) || value.is_null());
  if (path == "zero_optimization" && value.is_boolean())
    return config.find("zero_optimization.stage") && config.zero.stage == (value == json(true) ? 1 : 0);
  for (size_t dot = path.rfind('.'); dot != std::string::npos && dot > 0; dot = path.rfind('.', dot - 1))
    if (const Entry *entry = config.find(path.substr(0, dot))) {
      Leaves within;
      leaves(json::parse(entry->value), path.substr(0, dot), within);
      return within.count(path) && within[path] == value;
    }
  return false;
}

void check(const std::string &text) {
  Reading reading = readConfig(text, "c.json");
  ASSERT_EQ(reading.config.has_value(), reading.errors.empty()) << text;
  for (const std::string &error : reading.errors) {
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_EQ(error.rfind("c.json:", 0), 0u) << error;
    EXPECT_LT(error.size(), 500u) << error;
  }
  if (!reading.config)
    return;
  EXPECT_EQ(toJson(fromJson(toJson(*reading.config))), toJson(*reading.config)) << text;
  Leaves given;
  leaves(json::parse(text), "", given);
  for (const auto &[path, value] : given)
    EXPECT_TRUE(isAccountedFor(*reading.config, path, value)) << path << " of " << text;
}
} // namespace

TEST(ConfigMutation, NothingIsAcceptedInSilence) {
  uint32_t seed = randomSeed();
  RecordProperty("seed", std::to_string(seed));
  size_t legalCount = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    std::string text = Mutator(seed + i).mutate(fixtures()[i % fixtures().size()]);
    check(text);
    legalCount += readConfig(text, "c.json").config.has_value();
    if (HasFailure())
      FAIL() << "DS_SEED=" << seed << ", mutation " << i;
  }
  EXPECT_GT(legalCount, 50u) << "mutations that only break files prove little";
}

TEST(ConfigMutation, EveryPrefixGivesAnAnswer) {
  for (const std::string &text : fixtures())
    for (size_t length = 0; length < text.size(); ++length)
      check(text.substr(0, length));
}
