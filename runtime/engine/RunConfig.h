// A package's configuration for the run that it is in: what it was compiled with, or what a file says instead.
#ifndef DEEPSTRIDE_RUNTIME_ENGINE_RUNCONFIG_H
#define DEEPSTRIDE_RUNTIME_ENGINE_RUNCONFIG_H

#include "frontends/config/Config.h"
#include "runtime/core/Package.h"
#include "runtime/core/StatePlaces.h"
#include "runtime/training/TrainingRun.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds {

// Of a run's ranks, for messages: "one process; ds-run --ranks=N starts more".
struct RanksOrigin {
  unsigned ranks = 1;
  std::string from;
};
RanksOrigin originOf(unsigned ranks);

struct RunConfig {
  std::optional<config::TrainingConfig> config; // where there is no error
  std::vector<std::string> notes;               // a line each: what the file changes, and what has no effect
  std::vector<std::string> errors;
};

// What the package was compiled with, or, where `file` is not empty, what that file says, which may differ in nothing
// that was compiled; sizes are for the ranks that run. `name` is the package's, for messages. Throws Error naming what
// needs another compilation.
RunConfig runConfigOf(const Package &package, const std::string &name, const std::string &file,
                      const RanksOrigin &origin);

// Of a package whose micro-batches have one size.
std::optional<int64_t> pinnedBatch(const Package &package);

RunSettings runSettings(const config::TrainingConfig &config);
// Where states live, as offload_optimizer and offload_param say.
StatePlaces placesOf(const config::TrainingConfig &config);

// Throws Error(InvalidArgument) for what several ranks cannot do.
void refuseOnRanks(const config::TrainingConfig &config, unsigned ranks);

// What all ranks must begin with alike, whatever loop they run.
std::vector<std::pair<std::string, std::string>> factsOf(const Package &package, const config::TrainingConfig &config);

} // namespace ds
#endif
