#include "tools/ds-run/training/Setup.h"

#include "runtime/core/Checksums.h"
#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"

#include <cstdio>
#include <filesystem>

namespace ds {

// Of a package whose micro-batches have one size.
static std::optional<int64_t> pinnedBatch(const Package &package) {
  for (const TensorInfo &input : package.variant().entries[trainingEntry(package, "micro")].inputs)
    if (!input.shape.empty() && input.shape[0].isConstant() && input.name.rfind("quantize_", 0) != 0)
      return input.shape[0].evaluate({});
  return std::nullopt;
}

static void note(const RunRanks &ranks, const std::string &text) {
  if (ranks.isFirst())
    std::fprintf(stderr, "ds-run: note: %s\n", text.c_str());
}

config::TrainingConfig configOf(const Package &package, const TrainOptions &options, const RunRanks &ranks) {
  const std::optional<TrainingInfo> &training = package.manifest().training;
  if (!training)
    fail(ErrorCode::InvalidArgument, options.run.package,
         ": was not compiled for training: ds-opt does that with "
         "--mode=train");
  for (const ConfigValue &value : package.manifest().config)
    if (value.name == "mesh" && value.value != concat("data=", ranks.world()))
      fail(ErrorCode::InvalidArgument, options.run.package, ": was compiled with --mesh=", value.value, ", found ",
           ranks.world(), ranks.world() == 1 ? " rank (" : " ranks (", ranks.origin(), ")");
  config::TrainingConfig compiled = config::fromJson(training->config);
  std::optional<int64_t> pinned = pinnedBatch(package);
  if (options.config.empty()) {
    config::resolveFor(compiled, ranks.world(), ranks.origin(), pinned);
    return compiled;
  }
  config::ReadOptions reads;
  reads.ranks = ranks.world();
  reads.ranksFrom = ranks.origin();
  config::Reading reading = config::readConfigFile(options.config, reads);
  if (!reading.config) {
    for (size_t i = 1; i < reading.errors.size(); ++i)
      std::fprintf(stderr, "ds-run: error: %s\n", reading.errors[i].c_str());
    fail(ErrorCode::InvalidArgument, reading.errors.empty() ? options.config : reading.errors.front());
  }
  for (const std::string &text : config::notes(*reading.config))
    note(ranks, text);
  try { // for this number of ranks, too; sizes that do not fit it do not matter where others are given
    config::resolveFor(compiled, ranks.world(), ranks.origin(), pinned);
  } catch (const Error &) {
  }
  config::resolveFor(*reading.config, ranks.world(), ranks.origin(), pinned);
  config::Differences found = config::changes(compiled, *reading.config);
  if (!found.refused.empty()) {
    for (size_t i = 1; i < found.refused.size(); ++i)
      std::fprintf(stderr, "ds-run: error: %s: %s; compile again\n", options.config.c_str(),
                   found.refused[i].text().c_str());
    fail(ErrorCode::InvalidArgument, options.config, ": ", found.refused.front().text(), "; compile again");
  }
  for (const config::Difference &difference : found.allowed)
    note(ranks, difference.text());
  return std::move(*reading.config);
}

static bool fits(const config::TrainingConfig &compiled, std::optional<int64_t> pinned, const TrainOptions &options,
                 unsigned ranks) {
  try {
    config::TrainingConfig config = compiled;
    if (!options.config.empty()) {
      config::ReadOptions reads;
      reads.ranks = ranks;
      config::Reading reading = config::readConfigFile(options.config, reads);
      if (!reading.config)
        return false;
      config = *reading.config;
    }
    config::resolveFor(config, ranks, "", pinned);
    return true;
  } catch (const Error &) {
    return false;
  }
}

unsigned fittingRanks(const TrainOptions &options, unsigned most) {
  try {
    Options unverified = options.run;
    unverified.noVerify = true; // ranks verify it
    std::shared_ptr<const Package> package = loadPackage(options.run.package, unverified);
    const std::optional<TrainingInfo> &training = package->manifest().training;
    if (!training)
      return most;
    config::TrainingConfig compiled = config::fromJson(training->config);
    std::optional<int64_t> pinned = pinnedBatch(*package);
    for (unsigned ranks = most; ranks > 0; --ranks)
      if (fits(compiled, pinned, options, ranks))
        return ranks;
  } catch (const Error &) {
  }
  return most;
}

SessionOptions sessionOf(const TrainOptions &options, const RunRanks &ranks, const StatePlaces &places) {
  SessionOptions session;
  session.threads = options.run.threads;
  session.communicator = ranks.communicator();
  session.places = places;
  return session;
}

static std::string countText(const std::optional<int64_t> &count) { return count ? std::to_string(*count) : ""; }

std::vector<std::pair<std::string, std::string>> factsOf(const Package &package, const config::TrainingConfig &config,
                                                         const TrainOptions &options, const Dataset &data) {
  std::string settings;
  for (const config::Entry &entry : config.entries) // where a file lies and what its lines are does not matter
    settings += entry.key + "=" + entry.value + "\n";
  std::string sums = readTextFile(options.run.package + "/SHA256SUMS", size_t(1) << 30);
  return {{"package", sha256Hex(sums.data(), sums.size())},
          {"code", package.variant().mcpu},
          {"configuration", sha256Hex(settings.data(), settings.size())},
          {"micro-batches of", std::to_string(config.microBatch)},
          {"data of", concat(data.samples(), " samples")},
          {"--steps", countText(options.steps)},
          {"--epochs", countText(options.epochs)},
          {"--eval-interval", countText(options.evalInterval)},
          {"--save-interval", countText(options.saveInterval)},
          {"--patience", countText(options.patience)},
          {"--keep", countText(options.keep)},
          {"--shuffle", options.shuffle},
          {"--checkpoint", options.checkpoint.empty() ? "" : "given"},
          {"--resume", options.resumes ? "given" : ""},
          {"--eval-data", options.evalData.empty() ? "" : "given"}};
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

std::shared_ptr<const Dataset> openData(const Trainer &trainer, const std::vector<std::string> &paths,
                                        const TrainOptions &options) {
  DatasetOptions data;
  if (const std::optional<TrainingInfo> &training = trainer.package().manifest().training) {
    data.labels = training->labels;
    data.isShifted = !training->shiftsLabels;
  }
  Pins pins = parsePins(options.run.dims);
  std::vector<TensorInfo> inputs = trainer.batch();
  for (TensorInfo &input : inputs)
    for (size_t axis = 1; axis < input.shape.size(); ++axis)
      if (auto pin = pins.find(input.shape[axis].text()); pin != pins.end()) {
        input.shape[axis] = SizeExpr::constant(pin->second);
        if (axis == 1)
          data.sequence = pin->second;
      }
  return openDataset(paths, inputs, data);
}

std::pair<std::string, std::string> splitCheckpoint(const std::string &path) {
  std::filesystem::path whole(path);
  if (whole.filename().empty()) // "DIR/"
    whole = whole.parent_path();
  if (std::filesystem::exists(whole / checkpointInfoName) && whole.has_filename()) {
    std::filesystem::path parent = whole.parent_path();
    return {parent.empty() ? "." : parent.string(), whole.filename().string()};
  }
  if (!std::filesystem::is_directory(whole) && whole.has_parent_path() &&
      std::filesystem::is_directory(whole.parent_path()))
    return {whole.parent_path().string(), whole.filename().string()}; // a tag that is not there
  return {whole.string(), ""};
}

} // namespace ds
