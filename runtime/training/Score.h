// How well a model does over data: losses and counts of all batches, whichever rank judged them.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_SCORE_H
#define DEEPSTRIDE_RUNTIME_TRAINING_SCORE_H

#include "runtime/training/BatchReader.h"
#include "runtime/training/Ranks.h"
#include "runtime/training/Trainer.h"

namespace ds {

struct Score {
  double loss = 0;
  std::optional<double> accuracy; // of classes
  int64_t samples = 0, counted = 0;
};

// Over all of the data once, in order. Batches go to ranks in turn, and their figures are added in the order of
// batches: the score is the same at any number of ranks. A rank without a batch in the last round judges the first of
// it once more, uncounted, since packages may hold collectives.
Score evaluate(Trainer &trainer, const std::shared_ptr<const Dataset> &data, int64_t batch,
               Ranks &ranks = Ranks::one());

} // namespace ds
#endif
