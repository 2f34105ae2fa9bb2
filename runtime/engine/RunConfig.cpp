#include "runtime/engine/RunConfig.h"

#include "runtime/core/Checksums.h"
#include "runtime/core/Error.h"

namespace ds {

RanksOrigin originOf(unsigned ranks) {
  return {ranks, ranks == 1 ? "one process; ds-run --ranks=N starts more" : "that the run was started with"};
}

std::optional<int64_t> pinnedBatch(const Package &package) {
  for (const TensorInfo &input : package.variant().entries[trainingEntry(package, "micro")].inputs)
    if (!input.shape.empty() && input.shape[0].isConstant() && input.name.rfind("quantize_", 0) != 0)
      return input.shape[0].evaluate({});
  return std::nullopt;
}

RunConfig runConfigOf(const Package &package, const std::string &name, const std::string &file,
                      const RanksOrigin &origin) {
  const std::optional<TrainingInfo> &training = package.manifest().training;
  if (!training)
    fail(ErrorCode::InvalidArgument, name, ": was not compiled for training: ds-opt does that with --mode=train");
  for (const ConfigValue &value : package.manifest().config)
    if (value.name == "mesh" && value.value != concat("data=", origin.ranks))
      fail(ErrorCode::InvalidArgument, name, ": was compiled with --mesh=", value.value, ", found ", origin.ranks,
           origin.ranks == 1 ? " rank (" : " ranks (", origin.from, ")");
  config::TrainingConfig compiled = config::fromJson(training->config);
  std::optional<int64_t> pinned = pinnedBatch(package);
  if (file.empty()) {
    config::resolveFor(compiled, origin.ranks, origin.from, pinned);
    return {std::move(compiled), {}, {}};
  }
  config::ReadOptions reads;
  reads.ranks = origin.ranks;
  reads.ranksFrom = origin.from;
  config::Reading reading = config::readConfigFile(file, reads);
  RunConfig result;
  result.errors = std::move(reading.errors);
  if (!reading.config) {
    if (result.errors.empty())
      result.errors.push_back(file);
    return result;
  }
  result.notes = config::notes(*reading.config);
  try { // for this number of ranks, too; sizes that do not fit it do not matter where others are given
    config::resolveFor(compiled, origin.ranks, origin.from, pinned);
  } catch (const Error &) {
  }
  config::resolveFor(*reading.config, origin.ranks, origin.from, pinned);
  config::Differences found = config::changes(compiled, *reading.config);
  for (const config::Difference &difference : found.refused)
    result.errors.push_back(concat(file, ": ", difference.text(), "; compile again"));
  if (!result.errors.empty())
    return result;
  for (const config::Difference &difference : found.allowed)
    result.notes.push_back(difference.text());
  result.config = std::move(*reading.config);
  return result;
}

RunSettings runSettings(const config::TrainingConfig &config) {
  RunSettings settings;
  settings.schedule = config.schedule;
  settings.lossScale = config.lossScale;
  settings.accumulation = config.accumulation;
  settings.predivide = config.predivide;
  settings.layerDrop = config.layerDrop;
  settings.quantization = config.quantization;
  return settings;
}

static PlaceSettings settingsOf(const config::OffloadSettings &offload) {
  PlaceSettings settings;
  settings.place = offload.device == "nvme"  ? StatePlace::File
                   : offload.device == "cpu" ? StatePlace::Host
                                             : StatePlace::Device;
  settings.folder = offload.folder;
  settings.buffers = offload.buffers;
  settings.hostElements = offload.inHost;
  return settings;
}

StatePlaces placesOf(const config::TrainingConfig &config) {
  StatePlaces places;
  places.optimizer = settingsOf(config.zero.optimizerPlace);
  places.optimizer.pieceElements = config.zero.subGroup;
  places.parameters = settingsOf(config.zero.parameterPlace);
  return places;
}

void refuseOnRanks(const config::TrainingConfig &config, unsigned ranks) {
  const config::Entry *type = ranks > 1 ? config.find("optimizer.type") : nullptr;
  if (type && type->value == "\"ZeroOneAdam\"")
    fail(ErrorCode::InvalidArgument,
         "optimizer.type: found ZeroOneAdam, whose messages are not compressed yet, expected OneBitAdam, Adam or AdamW "
         "on ",
         ranks, " ranks");
}

std::vector<std::pair<std::string, std::string>> factsOf(const Package &package, const config::TrainingConfig &config) {
  std::string settings;
  for (const config::Entry &entry : config.entries) // where a file lies and what its lines are does not matter
    settings += entry.key + "=" + entry.value + "\n";
  std::string sums = package.checksums();
  return {{"package", sha256Hex(sums.data(), sums.size())},
          {"code", package.variant().mcpu},
          {"configuration", sha256Hex(settings.data(), settings.size())},
          {"micro-batches of", std::to_string(config.microBatch)}};
}

} // namespace ds
