// Any ds_config.json is read or gives errors of one line each; what was read is written and read as the same, equals
// itself, and steps by its schedule and its loss scale. Whatever a manifest holds instead is read or gives an Error.
#include "frontends/config/Config.h"
#include "frontends/config/Keys.h"
#include "runtime/core/Error.h"
#include "runtime/training/LossScale.h"
#include "runtime/training/Schedules.h"
#include "test/fuzz/JsonMutator.h"
#include "test/fuzz/TemporaryFile.h"

#include <nlohmann/json.hpp>
#include <sstream>

using namespace ds::config;
using namespace deepstride::fuzz;
using nlohmann::json;

namespace {

void step(const TrainingConfig &config) {
  ds::Schedule schedule(config.schedule);
  ds::LossScaler scaler(config.lossScale);
  for (int64_t i : {int64_t(0), int64_t(1), int64_t(1000), int64_t(1) << 40}) {
    schedule.at(i);
    scaler.update(i % 3 == 0);
  }
  ds::LossScaler(config.lossScale).restore(scaler.state());
}

// For any number of ranks sizes fit, or an Error says what would.
void divide(const TrainingConfig &config) {
  for (int64_t ranks : {1, 2, 3, 8, 4096}) {
    TrainingConfig divided = config;
    try {
      resolveFor(divided, ranks, "fuzz", ranks == 3 ? std::optional<int64_t>(2) : std::nullopt);
    } catch (const ds::Error &error) {
      if (std::string(error.what()).find('\n') != std::string::npos)
        finding("an error is not one line");
      continue;
    }
    if (static_cast<__int128>(divided.microBatch) * divided.accumulation * ranks != divided.trainBatch)
      finding("sizes do not multiply");
    if (toJson(fromJson(toJson(divided))) != toJson(divided))
      finding("a configuration that was divided is read as another one");
  }
}

void check(const TrainingConfig &config) {
  divide(config);
  std::string text = toJson(config);
  TrainingConfig again = fromJson(text);
  Differences found = changes(config, again);
  if (toJson(again) != text || !found.allowed.empty() || !found.refused.empty())
    finding("a configuration that was written is read as another one");
  std::ostringstream out;
  printConfig(config, out);
  notes(config);
  optimizerText(config.optimizer);
  step(config);
}

// A key of the table with its default or a number, so that mutations meet sections that no seed has.
void insertKey(std::string &text, Random &random) {
  json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object())
    return;
  const KeySpec &key = keys()[random.below(keys().size())];
  json *at = &document;
  for (std::string_view rest = key.path; !rest.empty();) {
    std::string name(rest.substr(0, rest.find('.')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (!at->is_object())
      *at = json::object();
    at = &(*at)[name];
  }
  json value = json::parse(key.fallback.begin(), key.fallback.end(), nullptr, false);
  *at = value.is_discarded() || random.oneIn(3) ? json(random.integer()) : value;
  text = document.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  ReadOptions strict;
  strict.isStrict = true;
  strict.ranks = 4;
  ReadOptions open;
  open.areRanksOpen = true;
  for (const ReadOptions &options : {ReadOptions(), strict, open}) {
    Reading reading = readConfig(text, "c.json", options);
    if (reading.config.has_value() != reading.errors.empty())
      finding("neither a configuration nor an error");
    for (const std::string &error : reading.errors)
      if (error.rfind("c.json:", 0) != 0 || error.find('\n') != std::string::npos || error.size() > 2000)
        finding("an error is not one line: " + error);
    if (reading.config)
      check(*reading.config);
  }
  try {
    fromJson(text);
  } catch (const ds::Error &) {
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string text(reinterpret_cast<char *>(data), size);
  if (random.oneIn(3))
    insertKey(text, random);
  else
    mutateJson(text, random);
  return store(text, data, size, maxSize);
}
