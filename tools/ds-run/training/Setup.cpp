#include "tools/ds-run/training/Setup.h"
#include "tools/ds-run/Messages.h"

#include "runtime/core/Error.h"

#include <cstdio>
#include <filesystem>

namespace ds {

static void note(const RunRanks &ranks, const std::string &text) {
  if (ranks.isFirst())
    printMessage("note: ", text);
}

config::TrainingConfig configOf(const Package &package, const TrainOptions &options, const RunRanks &ranks) {
  RunConfig found = runConfigOf(package, options.run.package, options.config, {ranks.world(), ranks.origin()});
  for (const std::string &text : found.notes)
    note(ranks, text);
  for (size_t i = 1; i < found.errors.size(); ++i)
    printMessage("error: ", found.errors[i]);
  if (!found.errors.empty())
    fail(ErrorCode::InvalidArgument, found.errors.front());
  return std::move(*found.config);
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
  auto facts = factsOf(package, config);
  facts.insert(facts.end(), {{"data of", concat(data.samples(), " samples")},
                             {"--steps", countText(options.steps)},
                             {"--epochs", countText(options.epochs)},
                             {"--eval-interval", countText(options.evalInterval)},
                             {"--save-interval", countText(options.saveInterval)},
                             {"--patience", countText(options.patience)},
                             {"--keep", countText(options.keep)},
                             {"--shuffle", options.shuffle},
                             {"--checkpoint", options.checkpoint.empty() ? "" : "given"},
                             {"--resume", options.resumes ? "given" : ""},
                             {"--eval-data", options.evalData.empty() ? "" : "given"}});
  return facts;
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
