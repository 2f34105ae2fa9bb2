#include "tools/ds-run/training/Setup.h"

#include "runtime/core/Error.h"

#include <cstdio>
#include <filesystem>

namespace ds {

config::TrainingConfig configOf(const Package &package, const TrainOptions &options) {
  const std::optional<TrainingInfo> &training = package.manifest().training;
  if (!training)
    fail(ErrorCode::InvalidArgument, options.run.package,
         ": was not compiled for training: ds-opt does that with "
         "--mode=train");
  config::TrainingConfig compiled = config::fromJson(training->config);
  if (options.config.empty())
    return compiled;
  config::Reading reading = config::readConfigFile(options.config);
  if (!reading.config) {
    for (size_t i = 1; i < reading.errors.size(); ++i)
      std::fprintf(stderr, "ds-run: error: %s\n", reading.errors[i].c_str());
    fail(ErrorCode::InvalidArgument, reading.errors.empty() ? options.config : reading.errors.front());
  }
  for (const std::string &note : config::notes(*reading.config))
    std::fprintf(stderr, "ds-run: note: %s\n", note.c_str());
  config::Differences found = config::changes(compiled, *reading.config);
  if (!found.refused.empty()) {
    for (size_t i = 1; i < found.refused.size(); ++i)
      std::fprintf(stderr, "ds-run: error: %s: %s; compile again\n", options.config.c_str(),
                   found.refused[i].text().c_str());
    fail(ErrorCode::InvalidArgument, options.config, ": ", found.refused.front().text(), "; compile again");
  }
  for (const config::Difference &difference : found.allowed)
    std::fprintf(stderr, "ds-run: note: %s\n", difference.text().c_str());
  return std::move(*reading.config);
}

SessionOptions sessionOf(const TrainOptions &options) {
  SessionOptions session;
  session.threads = options.run.threads;
  return session;
}

RunSettings runSettings(const config::TrainingConfig &config) {
  RunSettings settings;
  settings.schedule = config.schedule;
  settings.lossScale = config.lossScale;
  settings.accumulation = config.accumulation;
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
