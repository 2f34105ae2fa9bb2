// Keys of ds_config.json that ask for what ranks do not do.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_RANKKEYS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_RANKKEYS_H

#include "frontends/config/Config.h"
#include "tools/ds-run/training/RunRanks.h"

namespace ds {

// Of a training on several ranks. Throws Error(InvalidArgument) for what would change its numbers or its messages:
// compressed and sparse ones, other types. What would change memory or time alone is told by the first rank, a line
// each.
void checkRankKeys(const config::TrainingConfig &config, const RunRanks &group);

} // namespace ds
#endif
