// The log of training: a JSON object per step, a line each.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_TRAININGLOG_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_TRAININGLOG_H

#include "tools/ds-run/training/TrainPage.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace ds {

// What the configuration uses; the keys of the rest are null.
struct LogFields {
  bool hasMomentum = true, scalesLoss = true;
};

// All keys in their order; numbers that are none, and features that do nothing, are null.
nlohmann::ordered_json stepAsJson(const StepRecord &record, const std::optional<Score> &score, uint64_t peakBytes,
                                  const LogFields &fields);

class TrainingLog {
public:
  // An empty path: no log. `firstStep`: of a resumed run; lines of earlier steps stay, later ones go. Throws Error.
  TrainingLog(const std::string &path, int64_t firstStep, const LogFields &fields);
  TrainingLog(const TrainingLog &) = delete;
  TrainingLog &operator=(const TrainingLog &) = delete;
  ~TrainingLog();

  void add(const StepRecord &record, const std::optional<Score> &score, uint64_t peakBytes);
  // What steps before the first one have left in the file.
  const History &earlier() const { return kept; }

private:
  void keepEarlierLines(int64_t firstStep);

  std::string path;
  LogFields fields;
  History kept;
  std::FILE *file = nullptr;
};

} // namespace ds
#endif
