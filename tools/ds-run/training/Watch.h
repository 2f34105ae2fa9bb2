// What a person sees of training while it runs: progress on a terminal, lines, warnings about what does not go well.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_WATCH_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_WATCH_H

#include "runtime/training/TrainingRun.h"

#include <chrono>
#include <string>
#include <vector>

namespace ds {

class Watch {
public:
  explicit Watch(Trainer &trainer);

  void start(int64_t firstStep, int64_t lastStep);
  // After each step: draws progress, warns of a loss that grows and of parameters whose gradients stay 0.
  void seen(const StepRecord &record);
  // A line on standard output, above the progress.
  void say(const std::string &line);
  void finish();

private:
  void clear();
  std::vector<std::string> stillParameters();

  Trainer &trainer;
  bool isTerminal;
  std::chrono::steady_clock::time_point began, drawn;
  int64_t first = 0, last = 0, firstSamples = -1;
  double best = 0, average = 0; // of losses
  int64_t seenSteps = 0;
  bool hasWarned = false, isDrawn = false;
  std::vector<std::string> still; // parameters without a gradient so far
};

} // namespace ds
#endif
