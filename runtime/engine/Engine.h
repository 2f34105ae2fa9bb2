// A training as ds_config.json says it, whose micro-batches the caller brings: DeepSpeed's engine. Its steps are those
// of ds-run train, bit for bit.
#ifndef DEEPSTRIDE_RUNTIME_ENGINE_ENGINE_H
#define DEEPSTRIDE_RUNTIME_ENGINE_ENGINE_H

#include "runtime/engine/RunConfig.h"
#include "runtime/training/CommunicatorRanks.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ds {

struct EngineOptions {
  unsigned threads = 0;                       // 0: ThreadPool::defaultThreads()
  std::string config;                         // a file; empty: what the package was compiled with
  uint64_t seed = 0;                          // what dropout, dropped layers and rounding draw by
  std::shared_ptr<Communicator> communicator; // null: a world of one
};

class Engine {
public:
  // Ranks agree on package, configuration and seed. Throws Error.
  Engine(std::shared_ptr<const Package> package, const EngineOptions &options);
  // Other ranks learn that this one starts nothing more.
  ~Engine();

  const Ranks &ranks() const { return *others; }
  const config::TrainingConfig &config() const { return settings; }
  const std::vector<std::string> &notes() const { return texts; }
  const Trainer &trainer() const { return live; }
  const TrainingRun &run() const { return *training; }

  // This rank's next micro-batch of the step, in the order of trainer().batch(): its loss. As TrainingRun::microBatch.
  double microBatch(const std::vector<TensorView> &views);
  // The end of the step, after config().accumulation micro-batches. Throws Error(Execution) naming where the first
  // number that is none came from, where no smaller loss scale can mend the step.
  StepRecord step();
  Evaluation evaluate(const std::vector<TensorView> &views);

  // The folder gets what ds-run train --checkpoint writes; a loaded one may be of either. All ranks call them together.
  std::string save(const std::string &folder, const std::string &tag, const nlohmann::json &clientState);
  nlohmann::json load(const std::string &folder, const std::string &tag);

private:
  // Runs what may fail on one rank only: the others then learn it.
  template <typename Action> auto together(Action action) -> decltype(action());

  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Ranks> joined;
  Ranks *others;
  std::vector<std::string> texts;
  config::TrainingConfig settings;
  Trainer live;
  std::optional<TrainingRun> training;
};

} // namespace ds
#endif
