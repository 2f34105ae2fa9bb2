// Where a training's states live, and whether the device has room for them.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_PLACES_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_PLACES_H

#include "runtime/training/Dataset.h"
#include "runtime/training/Trainer.h"
#include "tools/ds-run/training/Setup.h"

namespace ds {

// "1048576", "64KiB", "3MiB", "2GiB"; nothing for anything else, and for 0.
std::optional<uint64_t> parseBytes(const std::string &text);

// What --device-memory and zero_optimization.offload_optimizer and offload_param say.
StatePlaces placesOf(const config::TrainingConfig &config, const TrainOptions &options);

// All states, and the workspace of the entry that takes most, in the places where they will be: throws Error before
// the first step where a file has no room, or the device, naming the state. Says what offloading does not change here.
void takePlaces(Trainer &trainer, const Dataset &data, const config::TrainingConfig &config,
                const TrainOptions &options, const RunRanks &group);

} // namespace ds
#endif
