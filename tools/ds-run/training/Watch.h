// What a person sees of training while it runs: progress on a terminal, lines, warnings about what does not go well.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_WATCH_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_WATCH_H

#include "runtime/training/TrainingRun.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ds {

class Watch {
public:
  // Speaks on rank 0; the others know of what is seen by all.
  Watch(Trainer &trainer, Ranks &ranks);

  void start(int64_t firstStep, int64_t lastStep);
  // After each step: draws progress, warns of a loss that grows and of parameters that do not move.
  void seen(const StepRecord &record);
  // A line on standard output, above the progress.
  void say(const std::string &line);
  // The same on standard error.
  void warn(const std::string &text);
  void finish();

private:
  void clear();
  void watchMovement(const StepRecord &record);
  // Of each parameter of `still`: whether it holds on any rank.
  std::vector<uint8_t> onAnyRank(const std::string &what, std::vector<uint8_t> own);
  void watchLoss(const StepRecord &record);
  // A hash of the bits that this rank has of each parameter of `still`, in order.
  std::vector<uint64_t> hashes();
  bool hasGradient(const std::string &parameter);

  Trainer &trainer;
  Ranks &ranks;
  bool isTerminal;
  std::chrono::steady_clock::time_point began, drawn;
  int64_t first = 0, last = 0, firstSamples = -1;
  double best = 0, average = 0, level = 0; // of losses; level: the greatest of the first ones
  int64_t seenSteps = 0, movingSteps = 0;  // movingSteps: of these, with a rate that is not 0
  bool hasWarned = false, isDrawn = false;
  std::vector<std::string> still;  // parameters that have not moved so far
  std::vector<uint64_t> beginning; // their hashes before the first step
};

} // namespace ds
#endif
