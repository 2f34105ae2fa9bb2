// What a run takes in memory: as planned, and as measured.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_MEMORYUSE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_MEMORYUSE_H

#include "frontends/config/Config.h"
#include "runtime/core/MemoryPlan.h"
#include "runtime/training/Dataset.h"
#include "runtime/training/Trainer.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace ds {

// Make it before a package is loaded: what the process has by then, programs and libraries, is not the run's.
class MemoryUse {
public:
  MemoryUse() : before(most()) {}

  // Resident bytes at most so far, above what there was before.
  uint64_t peakBytes() const { return std::max(most(), before) - before; }

private:
  static uint64_t most(); // 0 where the system does not say

  uint64_t before;
};

// For micro-batches of these data; nothing where sizes depend on the data itself.
std::optional<MemoryPlan> planOf(const Trainer &trainer, const Dataset &data, const config::TrainingConfig &config);

// "memory: planned 24.5 MiB (parameters 3, ...) and 0.5 for each of 2 threads, at most 26 MiB", for steps on the data.
std::string memoryText(const Trainer &trainer, const Dataset &data, const config::TrainingConfig &config,
                       unsigned threads, uint64_t peakBytes);

} // namespace ds
#endif
