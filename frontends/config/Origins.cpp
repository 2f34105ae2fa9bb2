// Configurations as text: for people, with the origin of each value, and for a package's manifest.
#include "frontends/config/Values.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <ostream>

namespace ds::config {
using nlohmann::json;

static std::string originText(const TrainingConfig &config, const Entry &entry) {
  std::string text = entry.source == Source::File      ? config.file + ":" + std::to_string(entry.line)
                     : entry.source == Source::Derived ? "derived"
                                                       : "default";
  return text + (entry.note.empty() ? "" : (entry.source == Source::Derived ? ": " : "; ") + entry.note);
}

void printConfig(const TrainingConfig &config, std::ostream &out) {
  size_t keyWidth = 0, valueWidth = 0;
  for (const Entry &entry : config.entries) {
    keyWidth = std::max(keyWidth, entry.key.size());
    valueWidth = std::max(valueWidth, std::min<size_t>(entry.value.size(), 40));
  }
  for (const Entry &entry : config.entries) {
    std::string key = entry.key, value = entry.value;
    key.resize(keyWidth, ' ');
    value.resize(std::max(valueWidth, value.size()), ' ');
    out << key << " = " << value << "   # " << originText(config, entry) << '\n';
  }
}

std::vector<std::string> notes(const TrainingConfig &config) {
  std::vector<std::string> lines;
  for (const Entry &entry : config.entries)
    // The line of the older spelling says the same.
    if (entry.source == Source::File && !entry.note.empty() && entry.note.rfind("from ", 0) != 0)
      lines.push_back(concat(config.file, ":", entry.line, ": ", entry.key, " = ", entry.value, ": ", entry.note));
  return lines;
}

static const char *const sources[] = {"file", "derived", "default"};

std::string toJson(const TrainingConfig &config) {
  json list = json::array();
  for (const Entry &entry : config.entries) {
    json item = {{"key", entry.key},
                 {"value", json::parse(entry.value)},
                 {"origin", sources[static_cast<size_t>(entry.source)]},
                 {"used", entry.isUsed}};
    if (entry.line)
      item["line"] = entry.line;
    if (!entry.note.empty())
      item["note"] = entry.note;
    list.push_back(std::move(item));
  }
  json document = {{"file", config.file}, {"ranks", config.ranks}, {"keys", std::move(list)}};
  return document.dump(-1, ' ', true, json::error_handler_t::replace);
}

namespace {
// Like the file's reader, but for what a program wrote: no guesses, no defaults.
class ManifestReader {
public:
  explicit ManifestReader(const JsonNode &root) : root(root) {}

  TrainingConfig run() {
    require(root, {"file", "ranks", "keys"}, "", 3);
    config.file = text(*root.find("file"), "file");
    config.ranks = integer(*root.find("ranks"), "ranks", 1);
    const JsonNode &list = *root.find("keys");
    if (list.kind != JsonNode::Kind::List)
      refuse("keys", list, "a list");
    for (size_t i = 0; i < list.parts.size(); ++i)
      config.entries.push_back(entry(list.parts[i], "keys[" + std::to_string(i) + "]"));
    checkKeys();
    assignMembers(config);
    checkSizes();
    return std::move(config);
  }

private:
  [[noreturn]] static void refuse(const std::string &place, const JsonNode &node, const std::string &expected) {
    fail(ErrorCode::BadPackage, "training configuration: ", place, ": found ", shown(node), ", expected ", expected);
  }

  static void require(const JsonNode &node, std::initializer_list<const char *> names, const std::string &place,
                      size_t most) {
    if (!node.isObject() || node.names.size() > most)
      refuse(place.empty() ? "document" : place, node, "an object of " + std::to_string(most) + " keys at most");
    for (const char *name : names)
      if (!node.find(name))
        fail(ErrorCode::BadPackage, "training configuration: ", place, place.empty() ? "" : ".", name, ": missing");
  }

  static std::string text(const JsonNode &node, const std::string &place) {
    if (!node.scalar.is_string())
      refuse(place, node, "a string");
    return node.scalar.get<std::string>();
  }

  static int64_t integer(const JsonNode &node, const std::string &place, int64_t low) {
    bool fits = node.scalar.is_number_integer() && node.scalar.get<double>() >= static_cast<double>(low) &&
                node.scalar.get<double>() <= 2147483647;
    if (!fits)
      refuse(place, node, "an integer in [" + std::to_string(low) + ", 2147483647]");
    return node.scalar.get<int64_t>();
  }

  static Entry entry(const JsonNode &node, const std::string &place) {
    const JsonNode *line = node.find("line"), *note = node.find("note");
    require(node, {"key", "value", "origin", "used"}, place, 4u + (line != nullptr) + (note != nullptr));
    Entry entry;
    entry.key = text(*node.find("key"), place + ".key");
    entry.value = node.find("value")->json().dump(-1, ' ', true, json::error_handler_t::replace);
    const JsonNode &origin = *node.find("origin"), &used = *node.find("used");
    auto source = std::find(std::begin(sources), std::end(sources), text(origin, place + ".origin"));
    if (source == std::end(sources))
      refuse(place + ".origin", origin, "file, derived or default");
    entry.source = static_cast<Source>(source - std::begin(sources));
    if (!used.scalar.is_boolean())
      refuse(place + ".used", used, "true or false");
    entry.isUsed = used.scalar.get<bool>();
    entry.line = line ? static_cast<int>(integer(*line, place + ".line", 1)) : 0;
    entry.note = note ? text(*note, place + ".note") : "";
    return entry;
  }

  std::string typeOf(const char *key) {
    const Entry *entry = config.find(key);
    if (!entry)
      fail(ErrorCode::BadPackage, "training configuration: ", key, ": missing");
    json value = json::parse(entry->value);
    return value.is_string() ? value.get<std::string>() : "";
  }

  // Each key once and with a legal value, and every key that applies.
  void checkKeys() {
    std::string optimizer = typeOf("optimizer.type"), scheduler = typeOf("scheduler.type");
    std::map<std::string, const Entry *> seen;
    for (Entry &entry : config.entries) {
      const KeySpec *key = findKey(entry.key, kindOf(entry.key, optimizer, scheduler));
      if (!key || !seen.emplace(entry.key, &entry).second)
        fail(ErrorCode::BadPackage, "training configuration: ", shownName(entry.key), ": found ",
             key ? "twice, expected once" : "an unknown key");
      Problems problems;
      JsonNode value = parseJson(entry.value, problems);
      bool isConstant = entry.key == "scheduler.type" && scheduler == "constant";
      if (isConstant)
        continue;
      Checked checked =
          key->isSection() ? Checked{value.json(), value.isObject() ? "" : "no object"} : checkValue(*key, value);
      if (!checked.error.empty())
        refuse(entry.key, value, legalText(*key));
      entry.value = checked.value.dump(-1, ' ', true, json::error_handler_t::replace);
    }
    for (const KeySpec &key : keys()) {
      std::string path(key.path);
      bool applies = key.use == KeyUse::Applies && !key.isSection() && key.isOf(kindOf(path, optimizer, scheduler));
      std::string enabled = techniqueSwitch(path);
      auto isOn = seen.find(enabled);
      bool isIdle = !enabled.empty() && (isOn == seen.end() || isOn->second->value != "true");
      if (applies && !isIdle && !seen.count(path))
        fail(ErrorCode::BadPackage, "training configuration: ", path, ": missing");
    }
  }

  void checkSizes() const {
    auto product = static_cast<__int128>(config.microBatch) * config.accumulation * config.ranks;
    if (product != config.trainBatch)
      fail(ErrorCode::BadPackage, "training configuration: train_batch_size: found ", config.trainBatch,
           ", expected the product of ", config.microBatch, ", ", config.accumulation, " and ", config.ranks);
  }

  const JsonNode &root;
  TrainingConfig config;
};
} // namespace

TrainingConfig fromJson(const std::string &text) {
  Problems problems;
  JsonNode root = parseJson(text, problems);
  if (!problems.empty())
    fail(ErrorCode::BadPackage, "training configuration: ", problems.all()[0].text);
  return ManifestReader(root).run();
}

} // namespace ds::config
