// What the command line says to the commands of training; each reads its part.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_TRAINOPTIONS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_TRAINOPTIONS_H

#include "tools/ds-run/Options.h"

#include <optional>

namespace CLI {
class App;
} // namespace CLI

namespace ds {

struct TrainOptions {
  Options run; // package, dims, threads, json, html
  std::string config;
  std::vector<std::string> data, evalData;
  std::optional<int64_t> steps, epochs, evalInterval, saveInterval, patience, keep;
  std::optional<uint64_t> seed;
  std::string shuffle = "on", checkpoint, tag, clientState, log, counters, deviceMemory;
  bool resumes = false;
  std::string resumeTag; // empty: the latest one
  // lr-range
  std::optional<double> leastRate, mostRate;
  // checkpoint
  std::string action, path, other, output;
  bool isQuantized = false;
};

// The subcommands train, eval, schedule, lr-range and checkpoint.
void addTrainingCommands(CLI::App &app, TrainOptions &options);
// Runs the one that was parsed; nothing where it was none of these.
std::optional<int> runTrainingCommand(const CLI::App &app, const TrainOptions &options);

int trainCommand(const TrainOptions &options);
int evalCommand(const TrainOptions &options);
int scheduleCommand(const TrainOptions &options);
int lrRangeCommand(const TrainOptions &options);
int checkpointCommand(const TrainOptions &options);

} // namespace ds
#endif
