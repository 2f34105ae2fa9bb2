// Looks every key of a file up in the table: what is not there, of the wrong kind, or switches on what we do not have.
#include "frontends/config/Values.h"

namespace ds::config {
using nlohmann::json;

namespace {
class Reader {
public:
  Reader(const ReadOptions &options, Problems &problems) : options(options), problems(problems) {}

  GivenKeys run(const JsonNode &root) {
    result.start = root.at;
    result.optimizer = typeOf(root, "optimizer", "");
    result.scheduler = typeOf(root, "scheduler", "constant");
    section(root, "");
    resolveAliases();
    return std::move(result);
  }

private:
  // The type decides which keys the section may have, wherever it stands in the file.
  std::string typeOf(const JsonNode &root, const std::string &name, const std::string &otherwise) {
    const JsonNode *section = root.find(name);
    if (!section || !section->isObject())
      return otherwise;
    const KeySpec &key = *findKey(name + ".type");
    const JsonNode *type = section->find("type");
    if (!type) {
      problems.add(section->at, key.path, ": missing, expected ", legalText(key));
      return otherwise;
    }
    Checked checked = checkValue(key, *type);
    return checked.error.empty() ? checked.value.get<std::string>() : otherwise;
  }

  void section(const JsonNode &node, const std::string &path) {
    for (size_t i = 0; i < node.parts.size() && !problems.isFull(); ++i) {
      const std::string &name = node.names[i].name;
      std::string whole = path.empty() ? name : path + "." + name;
      const std::string &kind = kindOf(whole, result.optimizer, result.scheduler);
      const KeySpec *key = name.find('.') == std::string::npos ? findKey(whole, kind) : nullptr;
      if (key)
        value(*key, node.parts[i], node.names[i].at);
      else
        unknown(path, name, kind, node.names[i].at);
    }
    if (node.parts.empty() && !path.empty())
      keep(path, json::object(), node.at, "empty");
  }

  void unknown(const std::string &section, const std::string &name, const std::string &kind, Place at) {
    std::string shownPath = (section.empty() ? "" : section + ".") + shownName(name);
    const KeySpec *other =
        name.find('.') == std::string::npos ? findKey(section.empty() ? name : section + "." + name) : nullptr;
    if (other) {
      // Without a legal type all parameters would be strangers; that error is enough.
      if (!kind.empty() && kind != "constant")
        problems.add(at, shownPath, ": ", kind, " has no such key; those that have it: ", std::string(other->of));
      return;
    }
    problems.add(at, shownPath, ": unknown key", advice(section, name, nearestKey(section, name, kind)));
  }

  static std::string advice(const std::string &section, const std::string &name, const std::string &nearest) {
    if (nearest.empty())
      return "; docs/config.md lists the legal ones";
    size_t dot = nearest.rfind('.');
    std::string home = dot == std::string::npos ? "" : nearest.substr(0, dot);
    if (nearest.substr(home.size() + !home.empty()) == name && home != section)
      return home.empty() ? "; it belongs outside of any section" : "; it belongs in section " + home;
    return "; did you mean " + nearest + "?";
  }

  void keep(const std::string &path, json value, Place at, const std::string &note = "", bool isUsed = false) {
    result.keys[path] = {std::move(value), at, note, isUsed};
  }

  void value(const KeySpec &key, const JsonNode &node, Place at) {
    std::string path(key.path);
    if (key.type == KeyType::Open)
      return open(path, node, at);
    if (key.type == KeyType::Section) {
      if (node.isObject())
        return section(node, path);
      // DeepSpeed's first form of this section.
      if (path == "zero_optimization" && node.kind == JsonNode::Kind::Scalar && node.scalar.is_boolean())
        return zeroStage(node.scalar.get<bool>() ? 1 : 0, at, ", from " + shown(node));
      problems.add(node.at, path, ": found ", shown(node), ", expected ", legalText(key));
      return;
    }
    Checked checked = checkValue(key, node);
    if (!checked.error.empty())
      return problems.add(node.at, path, ": ", checked.error);
    if (path == "zero_optimization.stage")
      return zeroStage(checked.value.get<int64_t>(), at, "");
    switch (key.use) {
    case KeyUse::Applies:
      keep(path, checked.value, at, "", true);
      // The optimizers that compress messages.
      if (path == "optimizer.type" && options.ranks == 1 && result.optimizer.find("One") != std::string::npos)
        refuseStrictly(path, shown(node), at);
      return;
    case KeyUse::Alias: return alias(key, checked.value, at);
    case KeyUse::Inert: return keep(path, checked.value, at, "without effect in a compiled step");
    case KeyUse::Ranks: return ranks(path, checked.value, at);
    case KeyUse::Places:
    case KeyUse::Fixed: return keep(path, checked.value, at, "", true);
    case KeyUse::Later: return later(key, checked.value, at);
    }
  }

  void alias(const KeySpec &key, const json &value, Place at) {
    std::string path(key.path), target(key.fallback);
    keep(path, value, at, "means " + target);
    aliases.emplace_back(path, target);
  }

  // Where ranks are open, a key may act when the package runs.
  bool isOneRank() const { return options.ranks == 1 && !options.areRanksOpen; }

  void zeroStage(int64_t stage, Place at, const std::string &how) {
    bool isIdle = isOneRank();
    keep("zero_optimization.stage", stage, at,
         isIdle        ? "without effect on one rank" + how
         : how.empty() ? ""
                       : how.substr(2),
         !isIdle);
    if (stage != 0 && options.ranks == 1)
      refuseStrictly("zero_optimization.stage", std::to_string(stage), at);
  }

  void ranks(const std::string &path, const json &value, Place at) {
    bool isIdle = isOneRank();
    keep(path, value, at, isIdle ? "without effect on one rank" : "", !isIdle);
    if (value != json(false) && options.ranks == 1)
      refuseStrictly(path, shown(value), at);
  }

  void refuseStrictly(const std::string &path, const std::string &value, Place at) {
    if (options.isStrict)
      problems.add(at, path, ": found ", value, ", which has no effect on one rank; expected no such key (strict)");
  }

  // A section that has the key `enabled` is switched on by it alone; otherwise any other value than the default is.
  void later(const KeySpec &key, const json &value, Place at) {
    std::string path(key.path), top = path.substr(0, path.find('.'));
    const KeySpec *enabled = findKey(top + ".enabled");
    bool isSwitch = !enabled || enabled->use != KeyUse::Later || enabled->path == key.path;
    if (isSwitch && value != json::parse(key.fallback))
      return problems.add(at, path, ": found ", shown(value), ", which switches on what this version does not have (",
                          std::string(findKey(top)->use == KeyUse::Later ? findKey(top)->effect : key.effect),
                          "); expected ", std::string(key.fallback));
    keep(path, value, at, "switched off");
  }

  static bool hasEnabled(const JsonNode &node, bool &isOn) {
    bool found = false;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      if (node.isObject() && node.names[i].name == "enabled") {
        found = true;
        isOn |= node.parts[i].scalar != json(false);
      }
      found |= hasEnabled(node.parts[i], isOn);
    }
    return found;
  }

  // Sections of which only whether they are on matters.
  void open(const std::string &path, const JsonNode &node, Place at) {
    const KeySpec &key = *findKey(path);
    if (!node.isObject()) {
      problems.add(node.at, path, ": found ", shown(node), ", expected ", legalText(key));
      return;
    }
    bool isOn = false;
    if (!hasEnabled(node, isOn))
      isOn = !node.parts.empty();
    if (isOn)
      return problems.add(at, path, ": found ", shown(node), ", which switches on what this version does not have (",
                          std::string(key.effect), ")");
    keep(path, node.json(), at, "switched off");
  }

  // The older spelling gives its value to the present one.
  void resolveAliases() {
    for (const auto &[path, target] : aliases) {
      const Given &from = result.keys[path];
      const Given *other = result.find(target);
      if (!other)
        keep(target, from.value, from.at, "from " + path, true);
      else if (other->value != from.value)
        problems.add(from.at, path, ": found ", shown(from.value), ", but ", target, " is ", shown(other->value),
                     " in line ", std::to_string(other->at.line), "; expected one of them");
    }
  }

  const ReadOptions &options;
  Problems &problems;
  GivenKeys result;
  std::vector<std::pair<std::string, std::string>> aliases;
};
} // namespace

GivenKeys readKeys(const JsonNode &root, const ReadOptions &options, Problems &problems) {
  return Reader(options, problems).run(root);
}

} // namespace ds::config
