#include "tools/ds-run/training/TrainingLog.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "tools/ds-run/training/Widths.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

namespace ds {

static nlohmann::ordered_json finite(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

static nlohmann::ordered_json used(double value, bool isUsed) {
  return isUsed ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json stepAsJson(const StepRecord &record, const std::optional<Score> &score, uint64_t peakBytes,
                                  const LogFields &fields) {
  nlohmann::ordered_json line = {{"step", record.step},
                                 {"samples", record.samples},
                                 {"loss", finite(record.loss)},
                                 {"lr", record.lr},
                                 {"momentum", used(record.momentum, fields.hasMomentum)},
                                 {"grad_norm", finite(record.gradNorm)},
                                 {"loss_scale", used(record.lossScale, fields.scalesLoss)},
                                 {"overflow", record.overflowed},
                                 {"skipped", record.skipped},
                                 {"theta", used(record.theta.value_or(1), record.theta.has_value())},
                                 {"blocks", record.theta ? nlohmann::ordered_json(record.blocks) : nullptr},
                                 {"keep_rates", record.theta ? nlohmann::ordered_json(record.keepRates) : nullptr},
                                 {"bits", bitsJson(record.bits)},
                                 {"step_ms", record.milliseconds},
                                 {"peak_bytes", peakBytes}};
  if (score) {
    line["eval_loss"] = finite(score->loss);
    line["accuracy"] = score->accuracy ? finite(*score->accuracy) : nlohmann::ordered_json(nullptr);
  }
  return line;
}

// NaN for null, which is what the log makes of numbers that are none.
static double numberAt(const nlohmann::json &line, const char *key, double fallback) {
  auto found = line.find(key);
  if (found == line.end())
    return fallback;
  return found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// What the page of the run draws of a line.
static void addLine(const nlohmann::json &line, History &history) {
  StepRecord record;
  record.step = line["step"].get<int64_t>();
  record.loss = numberAt(line, "loss", 0);
  record.lr = numberAt(line, "lr", 0);
  record.gradNorm = numberAt(line, "grad_norm", 0);
  if (double scale = numberAt(line, "loss_scale", 1); std::isfinite(scale))
    record.lossScale = scale;
  if (double theta = numberAt(line, "theta", std::numeric_limits<double>::quiet_NaN()); std::isfinite(theta))
    record.theta = theta;
  for (auto [key, count] : {std::pair("samples", &record.samples), std::pair("skipped", &record.skipped),
                            std::pair("blocks", &record.blocks)})
    if (auto found = line.find(key); found != line.end() && found->is_number_integer())
      *count = found->get<int64_t>();
  if (auto bits = line.find("bits"); bits != line.end())
    for (const nlohmann::json &own : bits->is_array() ? *bits : nlohmann::json::array({*bits}))
      if (own.is_number_integer())
        record.bits.push_back(own.get<int64_t>());
  auto overflow = line.find("overflow");
  record.overflowed = overflow != line.end() && overflow->is_boolean() && overflow->get<bool>();
  history.steps.push_back(record);
  if (!line.contains("eval_loss"))
    return;
  Score score;
  score.loss = numberAt(line, "eval_loss", 0);
  if (double accuracy = numberAt(line, "accuracy", 0); std::isfinite(accuracy) && line.contains("accuracy"))
    score.accuracy = accuracy;
  history.scores.emplace_back(record.step, score);
}

// Lines of steps before `firstStep`, in a new file in the place of the old one.
void TrainingLog::keepEarlierLines(int64_t firstStep) {
  std::ifstream old(path);
  if (!old)
    return;
  std::string text, line;
  while (std::getline(old, line)) {
    nlohmann::json step = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (step.is_object() && step.contains("step") && step["step"].is_number_integer() &&
        step["step"].get<int64_t>() < firstStep) {
      text += line + '\n';
      addLine(step, kept);
    }
  }
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

TrainingLog::TrainingLog(const std::string &path, int64_t firstStep, const LogFields &fields)
    : path(path), fields(fields) {
  if (path.empty())
    return;
  if (firstStep > 0)
    keepEarlierLines(firstStep);
  file = std::fopen(path.c_str(), firstStep > 0 ? "a" : "w");
  if (!file)
    fail(ErrorCode::Io, path, ": cannot write: ", std::strerror(errno));
}

TrainingLog::~TrainingLog() {
  if (file)
    std::fclose(file);
}

void TrainingLog::add(const StepRecord &record, const std::optional<Score> &score, uint64_t peakBytes) {
  if (!file)
    return;
  std::string line = stepAsJson(record, score, peakBytes, fields).dump() + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file) != line.size() || std::fflush(file) != 0)
    fail(ErrorCode::Io, path, ": cannot write: ", std::strerror(errno));
}

} // namespace ds
