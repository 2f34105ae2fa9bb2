// What the commands of training begin with: the package's configuration, data, a trainer.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_SETUP_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_SETUP_H

#include "runtime/engine/RunConfig.h"
#include "runtime/training/CheckpointFolder.h"
#include "runtime/training/Score.h"
#include "tools/ds-run/training/RunRanks.h"
#include "tools/ds-run/training/TrainOptions.h"

namespace ds {

// What the package was compiled with, or with --config what that file says, where it differs in nothing that was
// compiled; sizes are for the ranks that run. Prints what it changes on stderr. Throws Error naming what needs another
// compilation.
config::TrainingConfig configOf(const Package &package, const TrainOptions &options, const RunRanks &ranks);

// The largest number of ranks up to `most` that the sizes of batches allow; `most` where none does, or the package or
// the configuration cannot be read, which the ranks will say.
unsigned fittingRanks(const TrainOptions &options, unsigned most);

SessionOptions sessionOf(const TrainOptions &options, const RunRanks &ranks, const StatePlaces &places = {});

// What all ranks must begin with alike. A tag is none of it: checkpoint.tag_validation says what follows from others.
std::vector<std::pair<std::string, std::string>> factsOf(const Package &package, const config::TrainingConfig &config,
                                                         const TrainOptions &options, const Dataset &data);

// Files as the trainer's micro-batches need them.
std::shared_ptr<const Dataset> openData(const Trainer &trainer, const std::vector<std::string> &paths,
                                        const TrainOptions &options);

// "DIR/TAG" or "DIR": folder and tag, which may be empty.
std::pair<std::string, std::string> splitCheckpoint(const std::string &path);

} // namespace ds
#endif
