// The page of a training run: curves of loss, learning rate, gradient norm and loss scale.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_TRAINPAGE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_TRAINPAGE_H

#include "tools/ds-run/training/Setup.h"

namespace ds {

struct History {
  int64_t first = 0; // step of the run; what came before is here where a log had it
  std::vector<StepRecord> steps;
  std::vector<std::pair<int64_t, Score>> scores; // by step
};

void writeTrainPage(const std::string &path, const std::string &package, const History &history);

} // namespace ds
#endif
