// What stands between the file and TrainingConfig: checked values by key, and where the file gives them.
#ifndef DEEPSTRIDE_FRONTENDS_CONFIG_VALUES_H
#define DEEPSTRIDE_FRONTENDS_CONFIG_VALUES_H

#include "frontends/config/Config.h"
#include "frontends/config/Json.h"
#include "frontends/config/Keys.h"

#include <map>
#include <string>

namespace ds::config {

struct Given {
  nlohmann::json value;
  Place at;
  std::string note;
  bool isUsed = false;
};

// The file's keys, checked one by one.
struct GivenKeys {
  std::map<std::string, Given> keys;
  std::string optimizer = "", scheduler = "constant"; // types as the table spells them
  Place start;                                        // of the document, for what is missing

  const Given *find(const std::string &path) const {
    auto found = keys.find(path);
    return found == keys.end() ? nullptr : &found->second;
  }
  Place placeOf(const std::string &path) const {
    const Given *given = find(path);
    return given ? given->at : start;
  }
};

// The optimizer or scheduler that decides which row of the table holds for a path.
inline const std::string &kindOf(const std::string &path, const std::string &optimizer, const std::string &scheduler) {
  return path.rfind("scheduler.", 0) == 0 ? scheduler : optimizer;
}

// The value in its one form (integers as integers, choices as the table spells them), or what is wrong with it.
struct Checked {
  nlohmann::json value;
  std::string error;
};
Checked checkValue(const KeySpec &key, const JsonNode &node);

GivenKeys readKeys(const JsonNode &root, const ReadOptions &options, Problems &problems);

// The three sizes, each given or derived; an error where they do not fit each other and the ranks.
void resolveBatch(const GivenKeys &given, const ReadOptions &options, std::vector<Entry> &entries, Problems &problems);

// Where the file gives all three sizes, the ranks that they are for; else 1, or 0 where they fit no number of ranks.
int64_t impliedRanks(const GivenKeys &given);

// Every key that applies, then what the file says besides.
std::vector<Entry> resolveEntries(const GivenKeys &given, const ReadOptions &options, Problems &problems);

// Fills the members of TrainingConfig from its entries. Throws Error(BadPackage) where one is missing or illegal.
void assignMembers(TrainingConfig &config);
// The part of both of them that is about ranks.
void assignRanks(TrainingConfig &config);
void checkRanksTogether(TrainingConfig &config, const GivenKeys &given, Problems &problems);
// What no single key shows: contradictions are problems, what another key takes the effect from gets a note.
void checkTogether(TrainingConfig &config, const GivenKeys &given, Problems &problems);

} // namespace ds::config
#endif
