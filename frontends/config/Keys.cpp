#include "frontends/config/Keys.h"

#include <unordered_map>

namespace ds::config {

const std::vector<KeySpec> &keys() {
  static const std::vector<KeySpec> table = {
#define DS_KEY(path, type, fallback, legal, of, use, change, effect)                                                   \
  {path, KeyType::type, fallback, legal, of, KeyUse::use, KeyChange::change, effect},
#include "frontends/config/Keys.def"
  };
  return table;
}

bool KeySpec::isOf(std::string_view kind) const {
  if (of.empty())
    return true;
  std::string padded = " " + std::string(of) + " ";
  return !kind.empty() && padded.find(" " + std::string(kind) + " ") != std::string::npos;
}

// Rows of one path follow each other.
static const KeySpec *firstRow(std::string_view path) {
  static const std::unordered_map<std::string_view, const KeySpec *> rows = [] {
    std::unordered_map<std::string_view, const KeySpec *> rows;
    for (const KeySpec &key : keys())
      rows.emplace(key.path, &key);
    return rows;
  }();
  auto found = rows.find(path);
  return found == rows.end() ? nullptr : found->second;
}

const KeySpec *findKey(std::string_view path) { return firstRow(path); }

const KeySpec *findKey(std::string_view path, std::string_view kind) {
  const KeySpec *end = keys().data() + keys().size();
  for (const KeySpec *key = firstRow(path); key && key != end && key->path == path; ++key)
    if (key->isOf(kind))
      return key;
  return nullptr;
}

std::string techniqueSwitch(std::string_view path) {
  for (std::string_view technique : {"progressive_layer_drop.", "quantize_training."})
    if (std::string enabled = std::string(technique) + "enabled"; path.rfind(technique, 0) == 0 && path != enabled)
      return enabled;
  return "";
}

static std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string legalText(const KeySpec &key) {
  std::string legal(key.legal), null;
  if (size_t at = legal.find(" or null"); at != std::string::npos) {
    legal.erase(at);
    null = " or null";
  }
  std::string range = legal.empty() ? "" : (legal[0] == '[' || legal[0] == '(' ? " in " : " ") + legal;
  switch (key.type) {
  case KeyType::Bool: return "true or false" + null;
  case KeyType::Int: return "an integer" + range + null;
  case KeyType::Num: return "a number" + range + null;
  case KeyType::Pair: return "a list of two numbers" + range + null;
  case KeyType::Text: return (legal.empty() ? "a string" : replaced(legal, "|", ", ")) + null;
  case KeyType::Section: return key.path == "zero_optimization" ? "an object, true or false" : "an object";
  case KeyType::Open: return "an object";
  }
  return "";
}

static std::string cell(std::string_view text) { return replaced(std::string(text), "|", "\\|"); }

static std::string rowText(const KeySpec &key) {
  std::string effect(key.effect);
  if (!key.of.empty())
    effect += " (" + replaced(std::string(key.of), " ", ", ") + ")";
  bool hasFallback = !key.fallback.empty() && key.use != KeyUse::Alias;
  return "| `" + std::string(key.path) + "` | " + (hasFallback ? "`" + cell(key.fallback) + "`" : "") + " | " +
         cell(legalText(key)) + " | " + cell(effect) + " |\n";
}

std::string keysMarkdown() {
  static const struct {
    KeyUse use;
    const char *title;
  } parts[] = {{KeyUse::Applies, "Keys that apply"},
               {KeyUse::Alias, "Other spellings"},
               {KeyUse::Places, "Keys of where states live"},
               {KeyUse::Ranks, "Keys of ranks: without effect on one"},
               {KeyUse::Fixed, "Other values than the default are refused"},
               {KeyUse::Inert, "Without effect: they choose among implementations of DeepSpeed"},
               {KeyUse::Later, "Features of later parts: accepted while they are switched off"}};
  std::string text;
  for (const auto &part : parts) {
    text += "### " + std::string(part.title) + "\n\n| key | default | legal | effect |\n|---|---|---|---|\n";
    for (const KeySpec &key : keys())
      if (key.use == part.use)
        text += rowText(key);
    text += "\n";
  }
  text.pop_back();
  return text;
}

} // namespace ds::config
