#include "tools/ds-run/training/RankKeys.h"

#include "runtime/core/Error.h"

#include <cstdio>

namespace ds {

static void refuseMessages(const config::TrainingConfig &config, unsigned ranks) {
  auto refuse = [&](const char *key, const std::string &found, const char *expected) {
    fail(ErrorCode::InvalidArgument, key, ": found ", found, ", expected ", expected, " on ", ranks, " ranks");
  };
  if (const config::Entry *type = config.find("optimizer.type"))
    if (type->value == "\"ZeroOneAdam\"")
      refuse("optimizer.type", "ZeroOneAdam, whose messages are not compressed yet", "OneBitAdam, Adam or AdamW");
}

void checkRankKeys(const config::TrainingConfig &config, const RunRanks &group) {
  if (group.world() == 1)
    return;
  refuseMessages(config, group.world());
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
      {"zero_optimization.sub_group_size", true,
       "what a rank owns of a unit is updated at once, in place, and is resident as a whole"},
  };
  for (const Inert &inert : keys)
    if (const config::Entry *entry = config.find(inert.key);
        inert.isInert && entry && entry->source == config::Source::File)
      std::fprintf(stderr, "ds-run: note: %s = %s: without effect, %s\n", inert.key, entry->value.c_str(), inert.why);
}

} // namespace ds
