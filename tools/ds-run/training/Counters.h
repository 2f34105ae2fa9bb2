// What a training took and moved on each rank, in the words of ds-opt --plan.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_COUNTERS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_COUNTERS_H

#include "runtime/training/Trainer.h"
#include "tools/ds-run/training/RunRanks.h"

#include <string>

namespace ds {

// All ranks call it; the first one writes. {"mesh", "steps", "ranks": [{"rank", "bytes": {...}, "places": {...},
// "files": {...}, "sites": [{"site", "op", "calls", "elements", "sent", "received", "wait_ns"}], "own": [...]}]}: sites
// are the package's, own the loop's. Bytes are of the class of states that are there at the end, and the process's
// peak.
void writeCounters(const std::string &path, Trainer &trainer, const RunRanks &group, int64_t steps, uint64_t peakBytes);

} // namespace ds
#endif
