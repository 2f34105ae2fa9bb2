#include "tools/ds-run/training/TrainingLog.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

namespace ds {

static nlohmann::ordered_json finite(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json stepAsJson(const StepRecord &record, const std::optional<Score> &score) {
  nlohmann::ordered_json line = {{"step", record.step},
                                 {"samples", record.samples},
                                 {"loss", finite(record.loss)},
                                 {"lr", record.lr},
                                 {"momentum", record.momentum},
                                 {"grad_norm", finite(record.gradNorm)},
                                 {"loss_scale", record.lossScale},
                                 {"overflow", record.overflowed},
                                 {"skipped", record.skipped},
                                 {"theta", nullptr},
                                 {"blocks", nullptr},
                                 {"bits", nullptr},
                                 {"step_ms", record.milliseconds}};
  if (score) {
    line["eval_loss"] = finite(score->loss);
    line["accuracy"] = score->accuracy ? finite(*score->accuracy) : nlohmann::ordered_json(nullptr);
  }
  return line;
}

// Lines of steps before `firstStep`, in a new file in the place of the old one.
static void keepEarlierLines(const std::string &path, int64_t firstStep) {
  std::ifstream old(path);
  if (!old)
    return;
  std::string kept, line;
  while (std::getline(old, line)) {
    nlohmann::json step = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (step.is_object() && step.contains("step") && step["step"].is_number_integer() &&
        step["step"].get<int64_t>() < firstStep)
      kept += line + '\n';
  }
  AtomicFile file(path);
  file.write(kept.data(), kept.size());
  file.commit();
}

TrainingLog::TrainingLog(const std::string &path, int64_t firstStep) : path(path) {
  if (path.empty())
    return;
  if (firstStep > 0)
    keepEarlierLines(path, firstStep);
  file = std::fopen(path.c_str(), firstStep > 0 ? "a" : "w");
  if (!file)
    fail(ErrorCode::Io, path, ": cannot write: ", std::strerror(errno));
}

TrainingLog::~TrainingLog() {
  if (file)
    std::fclose(file);
}

void TrainingLog::add(const StepRecord &record, const std::optional<Score> &score) {
  if (!file)
    return;
  std::string line = stepAsJson(record, score).dump() + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file) != line.size() || std::fflush(file) != 0)
    fail(ErrorCode::Io, path, ": cannot write: ", std::strerror(errno));
}

} // namespace ds
