// What the tests of configurations share.
#ifndef DEEPSTRIDE_TEST_UNIT_CONFIG_SUPPORT_H
#define DEEPSTRIDE_TEST_UNIT_CONFIG_SUPPORT_H

#include "frontends/config/Config.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace ds::config::test {

inline std::string fixture(const std::string &name) {
  std::ifstream stream(std::string(DS_CONFIG_INPUTS) + "/" + name);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline const std::vector<std::string> &fixtures() {
  static const std::vector<std::string> texts = {fixture("bert.json"), fixture("gpt2.json"), fixture("minimal.json"),
                                                 fixture("many-keys.json")};
  return texts;
}

inline std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += (text.empty() ? "" : "\n") + line;
  return text;
}

// A configuration that must be legal.
inline TrainingConfig legal(const std::string &text, const ReadOptions &options = {}) {
  Reading reading = readConfig(text, "c.json", options);
  EXPECT_TRUE(reading.config) << joined(reading.errors) << "\n" << text;
  return reading.config.value_or(TrainingConfig());
}

// The errors of one that must not be.
inline std::string errorsOf(const std::string &text, const ReadOptions &options = {}) {
  Reading reading = readConfig(text, "c.json", options);
  EXPECT_FALSE(reading.config) << text;
  return joined(reading.errors);
}

// A legal file with other members beside.
inline std::string with(const std::string &members, const std::string &optimizer = R"({"type": "Adam"})") {
  return R"({"train_batch_size": 8, "optimizer": )" + optimizer + (members.empty() ? "" : ", ") + members + "}";
}

inline std::string withSchedule(const std::string &type, const std::string &params = "") {
  return with(R"("scheduler": {"type": ")" + type + R"(", "params": {)" + params + "}}");
}

inline std::string valueOf(const TrainingConfig &config, const std::string &key) {
  const Entry *entry = config.find(key);
  return entry ? entry->value : "nothing";
}

inline std::string noteOf(const TrainingConfig &config, const std::string &key) {
  const Entry *entry = config.find(key);
  return entry ? entry->note : "nothing";
}

} // namespace ds::config::test
#endif
