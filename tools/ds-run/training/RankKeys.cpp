#include "tools/ds-run/training/RankKeys.h"
#include "tools/ds-run/Messages.h"

#include "runtime/engine/RunConfig.h"

#include <cstdio>

namespace ds {

void checkRankKeys(const config::TrainingConfig &config, const RunRanks &group) {
  if (group.world() == 1)
    return;
  refuseOnRanks(config, group.world());
  if (!group.isFirst())
    return;
  struct Inert {
    const char *key;
    bool isInert;
    const char *why;
  };
  const int64_t stage = config.zero.stage;
  const Inert keys[] = {
      {"zero_optimization.allgather_bucket_size", stage == 0 || stage == 3, "no update gathers parameters"},
  };
  for (const Inert &inert : keys)
    if (const config::Entry *entry = config.find(inert.key);
        inert.isInert && entry && entry->source == config::Source::File)
      printMessage("note: ", inert.key, " = ", entry->value, ": without effect, ", inert.why);
}

} // namespace ds
