// Steps of training in order: micro-batches, update, schedule, loss scale; what a checkpoint needs to go on from there.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_TRAININGRUN_H
#define DEEPSTRIDE_RUNTIME_TRAINING_TRAININGRUN_H

#include "runtime/training/Checkpoint.h"
#include "runtime/training/FaultFinder.h"
#include "runtime/training/LayerDrop.h"
#include "runtime/training/LossScale.h"
#include "runtime/training/Ranks.h"
#include "runtime/training/Schedules.h"
#include "runtime/training/Trainer.h"

namespace ds {

struct RunSettings {
  ScheduleSettings schedule;
  LossScaleSettings lossScale;
  LayerDropSettings layerDrop;       // of a package whose blocks have gates
  int64_t accumulation = 1;          // micro-batches of a step on one rank
  double predivide = 1;              // of gradients before they are reduced among ranks; 1: by ranks
  QuantizationSettings quantization; // of packages that train on quantized parameters
};

// What a step did, as logs have it.
struct StepRecord {
  int64_t step = 0, samples = 0;             // samples: of all steps up to this one
  int64_t microBatches = 0, stepSamples = 0; // of this one
  double loss = 0;                           // mean over the step's samples
  double lr = 0, momentum = 0, gradNorm = 0;
  double lossScale = 1;    // that the step leaves
  bool overflowed = false; // nothing was updated
  bool isFrozen = false;   // the second averages of a 1-bit optimizer stayed
  bool isHopeless = false; // and the scale cannot fall any further, or there is none
  int64_t skipped = 0;     // steps so far that updated nothing
  // Of a package whose blocks have gates.
  std::optional<double> theta;
  int64_t blocks = 0;            // that ran, in all micro-batches
  std::vector<double> keepRates; // by block: the share of all micro-batches so far in which it ran
  std::vector<int64_t>
      bits; // of each block of quantized parameters, that the step leaves; empty until they are rounded
  std::vector<double> eigenvalues;                                // of each layer, where they were computed
  double milliseconds = 0, dataMs = 0, microMs = 0, updateMs = 0; // all of it, and its parts
};

// On N ranks a step has the micro-batches that one process would read for it: micro-batch k of them is rank k mod N's,
// in its round k / N. Each has the numbers that it would have there, random ones too, but for the gates of layers:
// blocks run or not for a round, on all ranks alike. Where a step ends with fewer micro-batches, ranks without one in
// the last round compute the first of it once more, with weight 0: packages may hold collectives, which all take part
// in. Records are the same on all ranks.
class TrainingRun {
public:
  // Throws Error(InvalidArgument) where the package has one micro-batch a step and the settings ask for more.
  TrainingRun(Trainer &trainer, const RunSettings &settings, BatchReader &reader, Ranks &ranks = Ranks::one());
  // Of micro-batches that the caller brings; random numbers are drawn by the seed.
  TrainingRun(Trainer &trainer, const RunSettings &settings, uint64_t seed, Ranks &ranks = Ranks::one());

  // One step; nothing at the end of the data. Throws Error; parameters, optimizer, place in the data and numbers are
  // then as before. All ranks call it together.
  std::optional<StepRecord> step();
  // With other rates than the schedule's.
  std::optional<StepRecord> step(const Rates &rates);

  // The same step in parts, where the caller brings the micro-batches: `accumulation` of them on each rank, and then
  // the end of the step. Each returns its loss. Throws Error: the step then begins anew, and all else is as before.
  // All ranks call them alike; where one fails, it must leave the others (Communicator::leave).
  double microBatch(std::vector<Tensor> tensors);
  StepRecord finishStep();
  // Of the step under way.
  int64_t broughtBatches() const { return current ? current->round : 0; }
  int64_t batchesOfStep() const { return accumulation; }
  // Drops the micro-batches of the step under way.
  void abandonStep();
  // What the next step uses.
  Rates rates() const { return schedule.at(count - skippedCount); }
  double lossScale() const { return scaler.scale(); }

  // Sees the launches of the steps that follow; null: nobody does.
  void observe(LaunchObserver *next) { observer = next; }

  // After a step that overflowed: computes it once more and says where the first number that is none came from: "step
  // 7: NaN in tensor 'x' of node 'y' (Log, kernel z), samples 1, 2, 3". Gradients are then those of no
  // step. On all ranks together, with the same answer.
  std::string findFault(const OperatorOf &operatorOf = {});

  int64_t steps() const { return count; }
  int64_t skipped() const { return skippedCount; }
  int64_t samples() const { return sampleCount; }
  // Those of this rank.
  const std::vector<Batch> &lastBatches() const { return batches; }

  // Between steps. `trainer` of the progress holds our numbers and what the caller put there.
  TrainingProgress progress() const;
  std::vector<CheckpointPart> parts(); // views of the session's states
  std::function<void(const void *, size_t)> releaseOfStates();
  // Throws Error: names, types, shapes, numbers or data that do not fit; states are then as StateStore::restore says.
  void restore(Checkpoint &checkpoint);

private:
  // A step under way.
  struct Current {
    StepRecord record;
    LayerCounts counts;
    std::vector<double> losses; // of this rank, by round
    int64_t round = 0;          // rounds that were run
  };

  // The step's micro-batches, and those of this rank, read and checked. Returns their samples; 0 at the data's end.
  int64_t readBatches();
  void beginStep();
  // Runs this rank's micro-batch of the next round.
  void runRound();
  // The losses of all micro-batches, in their order.
  std::vector<double> gatherLosses();
  // From the losses to the record.
  StepRecord endStep(const Rates &rates);
  // Statistics as the mean of what all ranks have moved them to, each weighed by its micro-batches.
  void averageStatistics();
  // Where a bit is about to drop: by how much the period of its block grows.
  void findFactors(StepRecord &record);
  size_t rounds() const { return (places.size() + ranks.world() - 1) / ranks.world(); }
  // The micro-batch of a round on this rank, and whether it counts: else it is the first one of the round.
  std::pair<size_t, bool> batchOf(size_t round) const;
  // What gradients and losses are weighed by, and what the update divides by: gradients are the mean over all.
  double weight() const { return scaleOfUpdate() / static_cast<double>(places.size()); }
  double scaleOfUpdate() const { return lastScale * shareOfRanks; }
  RandomPlace placeOf(int64_t step, size_t micro) const;
  std::vector<LayerGate> gatesOf(int64_t step, size_t round) const;
  void replay(size_t round, bool isFirst, LaunchObserver *observer);
  std::string findInData() const;
  std::string findInLaunches(const OperatorOf &operatorOf);
  std::string findInGradients();

  Trainer &trainer;
  Schedule schedule;
  LossScaler scaler;
  LayerDrop layerDrop;
  LayerCounts layerCounts;
  int64_t accumulation;
  EigenvalueSettings eigenvalue;
  BatchReader *reader = nullptr;                    // none where micro-batches are brought
  LoaderPosition loader;                            // where a loaded run stood in its data, which the next
  nlohmann::json ofData = nlohmann::json::object(); // checkpoint says again, and what it said of them
  uint64_t seed;
  Ranks &ranks;
  std::optional<Current> current;
  double shareOfRanks = 1;        // ranks over gradient_predivide_factor, where that is not 1
  std::vector<BatchPlace> places; // of the last step's micro-batches
  std::vector<Batch> batches;     // this rank's of them
  double lastScale = 1;
  LaunchObserver *observer = nullptr;
  int64_t count = 0, skippedCount = 0, sampleCount = 0;
};

} // namespace ds
#endif
