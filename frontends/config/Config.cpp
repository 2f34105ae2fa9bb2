#include "frontends/config/Config.h"

#include "frontends/config/Values.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>

namespace ds::config {

const Entry *TrainingConfig::find(const std::string &key) const {
  auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry &entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

static std::optional<TrainingConfig> read(const std::string &text, const std::string &file, const ReadOptions &options,
                                          Problems &problems) {
  JsonNode root = parseJson(text, problems);
  if (!problems.empty())
    return std::nullopt;
  if (!root.isObject()) {
    problems.add(root.at, "found ", shown(root), ", expected a JSON object");
    return std::nullopt;
  }
  GivenKeys given = readKeys(root, options, problems);
  if (!problems.empty())
    return std::nullopt;
  ReadOptions known = options;
  if (options.areRanksOpen) {
    known.ranks = std::max<int64_t>(impliedRanks(given), 1);
    known.ranksFrom = known.ranks == 1 ? "one process" : "as the three sizes say";
    if (known.ranks > 1)
      given = readKeys(root, known, problems);
  }
  TrainingConfig config;
  config.file = file;
  config.ranks = known.ranks;
  config.entries = resolveEntries(given, known, problems);
  if (!problems.empty())
    return std::nullopt;
  assignMembers(config);
  checkTogether(config, given, problems);
  return config;
}

Reading readConfig(const std::string &text, const std::string &file, const ReadOptions &options) {
  constexpr size_t most = 1 << 20;
  Reading reading;
  Problems problems;
  if (text.size() > most)
    problems.add({}, "has ", std::to_string(text.size()), " bytes, expected at most ", std::to_string(most));
  else
    reading.config = read(text, file, options, problems);
  if (!problems.empty())
    reading.config.reset();
  std::vector<Problem> all = problems.all();
  std::sort(all.begin(), all.end(), [](const Problem &a, const Problem &b) {
    return std::tie(a.at.line, a.at.column, a.text) < std::tie(b.at.line, b.at.column, b.text);
  });
  for (const Problem &problem : all)
    reading.errors.push_back(concat(file, ":", problem.at.line, ":", problem.at.column, ": ", problem.text));
  return reading;
}

Reading readConfigFile(const std::string &path, const ReadOptions &options) {
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  // A pipe or device could be waited for without end.
  if (!std::filesystem::is_regular_file(status))
    return {std::nullopt,
            {path + ": found " +
             (std::filesystem::is_directory(status)                    ? "a directory"
              : std::filesystem::exists(status)                        ? "no regular file"
              : error && error != std::errc::no_such_file_or_directory ? error.message()
                                                                       : "nothing") +
             ", expected a JSON file"}};
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return {std::nullopt, {path + ": " + std::strerror(errno) + ", expected a JSON file that may be read"}};
  // One more than readConfig takes.
  std::string text((1 << 20) + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad())
    return {std::nullopt, {path + ": cannot be read"}};
  text.resize(static_cast<size_t>(stream.gcount()));
  return readConfig(text, path, options);
}

static std::string numberText(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string optimizerText(const OptimizerConfig &o) {
  std::string text;
  auto number = [&](const char *key, double value) { text += concat(",", key, "=") + numberText(value); };
  auto flag = [&](const char *key, bool value) { text += concat(",", key, "=", value ? "true" : "false"); };
  switch (o.kind) {
  case OptimizerKind::Sgd:
    text = "sgd";
    flag("momentum", o.hasMomentum());
    number("dampening", o.dampening);
    flag("nesterov", o.isNesterov);
    break;
  case OptimizerKind::Adagrad:
    text = "adagrad";
    number("epsilon", o.eps);
    number("initial", o.initialAccumulator);
    number("lr_decay", o.lrDecay);
    break;
  case OptimizerKind::Adam:
  case OptimizerKind::Lamb:
    text = o.kind == OptimizerKind::Lamb ? "lamb" : o.isDecoupled ? "adamw" : "adam";
    if (o.compresses)
      text = o.kind == OptimizerKind::Lamb ? "one_bit_lamb" : "one_bit_adam";
    number("beta2", o.beta2);
    number("epsilon", o.eps);
    if (!o.compresses)
      flag("bias_correction", o.correctsBias);
    if (o.kind == OptimizerKind::Lamb) {
      number("min_coeff", o.minCoeff);
      number("max_coeff", o.maxCoeff);
      if (!o.compresses) {
        flag("epsilon_inside", o.hasEpsInside);
        break;
      }
      number("coeff_beta", o.coeffBeta);
      number("factor_min", o.factorMin);
      number("factor_max", o.factorMax);
      number("factor_threshold", o.factorThreshold);
    }
    break;
  }
  number("weight_decay", o.weightDecay);
  return text;
}

} // namespace ds::config
