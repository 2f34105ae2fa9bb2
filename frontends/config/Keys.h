// The table of keys that ds_config.json may hold (Keys.def): reading, printing, comparing and docs/config.md use it.
#ifndef DEEPSTRIDE_FRONTENDS_CONFIG_KEYS_H
#define DEEPSTRIDE_FRONTENDS_CONFIG_KEYS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::config {

enum class KeyType : uint8_t {
  Bool,
  Int,
  Num,
  Text,
  Pair,
  Section,
  Open
}; // Open: a section whose keys are not looked at

enum class KeyUse : uint8_t {
  Applies, // means something here
  Ranks,   // without effect on one rank
  Places,  // where states live: means something here, and has no entry where the file says nothing
  Fixed,   // has one value on several ranks, without effect on one; others are refused, the effect says why
  Later,   // switches on what a later part of the system has
  Inert,   // chooses among implementations that we do not have
  Alias    // another spelling of a key
};

// What a value may do without compiling again.
enum class KeyChange : uint8_t { Free, Compiled, Batch, Accumulation };

struct KeySpec {
  std::string_view path;
  KeyType type;
  std::string_view fallback, legal, of;
  KeyUse use;
  KeyChange change;
  std::string_view effect;

  bool isSection() const { return type == KeyType::Section || type == KeyType::Open; }
  // Whether the optimizer or scheduler has this key; keys of neither are had by all.
  bool isOf(std::string_view kind) const;
};

const std::vector<KeySpec> &keys();
// The row of a path for an optimizer or scheduler; null where there is none.
const KeySpec *findKey(std::string_view path, std::string_view kind);
// The first row of a path, for whatever kind.
const KeySpec *findKey(std::string_view path);
// The key that must be true for the values of a path to mean anything, where defaults would only be in the way else:
// they are no entries then. Empty for all other paths.
std::string techniqueSwitch(std::string_view path);
// "number in [0, 1)", as messages and the documentation say it.
std::string legalText(const KeySpec &key);
// docs/config.md's tables.
std::string keysMarkdown();

// The path of the key that somebody who wrote `name` in `section` most likely meant; empty where none is near.
std::string nearestKey(const std::string &section, const std::string &name, std::string_view kind);

} // namespace ds::config
#endif
