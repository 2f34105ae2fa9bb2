// A package of --mode=train as a loop uses it: micro-batches, updates, evaluations. The package computes, this calls.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_TRAINER_H
#define DEEPSTRIDE_RUNTIME_TRAINING_TRAINER_H

#include "runtime/core/Session.h"
#include "runtime/training/BitSchedule.h"
#include "runtime/training/Checkpoint.h"
#include "runtime/training/LayerDrop.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ds {

struct StepNumbers {
  double learningRate = 0;
  double momentum = 0;  // Adam's beta1, SGD's momentum
  int64_t step = 1;     // 1 for the first update that changes parameters
  double lossScale = 1; // what losses were multiplied by
};

struct StepResult {
  double gradNorm = 0;   // of all gradients, over the loss scale, before clipping
  bool isFinite = true;  // where it is not, nothing was updated
  bool isFrozen = false; // second averages stayed, and momentum was what ranks exchanged
};

struct Evaluation {
  double loss = 0;                   // mean over what was counted
  int64_t counted = -1, correct = 0; // labels; -1 where the loss is not of classes
  std::vector<Tensor> outputs;       // the model's own
};

// Makes of a row, a sample's place in a batch, what a message calls it.
using RowName = std::function<std::string(int64_t row)>;

// Checks the labels among the tensors of a batch before anything is computed. Throws Error(InvalidArgument) with row,
// value and legal values. A package that says nothing of labels has none to check.
void checkLabels(const Package &package, const std::vector<TensorInfo> &fields, const std::vector<TensorView> &views,
                 const RowName &place);

// The entry of that name. Throws Error(InvalidArgument) where the package was not compiled for training.
size_t trainingEntry(const Package &package, const std::string &name);

// Where a micro-batch stands among those of its step.
struct MicroPlace {
  bool isFirst = false, isLast = false;
};

class Trainer {
public:
  // Throws Error(InvalidArgument) where the package was not compiled for training.
  Trainer(std::shared_ptr<const Package> package, const SessionOptions &options = {});

  Session &session() { return live; }
  const Package &package() const { return live.package(); }
  const Mesh &mesh() const { return live.mesh(); }

  // What a micro-batch holds, in order: the model's inputs, then labels where the loss has some.
  const std::vector<TensorInfo> &batch() const { return fields; }
  // The parameters' states, by ONNX name.
  const std::vector<std::string> &parameters() const { return names; }
  // The model's own outputs, by name, as evaluate gives them.
  const std::vector<std::string> &outputs() const { return outputNames; }
  // The optimizer's states, NAME/exp_avg and so on.
  const std::vector<std::string> &optimizerStates() const { return kept; }
  // The running statistics, by ONNX name: no gradient moves them, but micro-batches do, and the step keeps that.
  const std::vector<std::string> &statistics() const { return running; }
  // The state that a parameter's gradients are added up in.
  static std::string gradientOf(const std::string &parameter) { return parameter + "/gradient"; }
  // The state in which the micro-batches of a step move a running statistic.
  static std::string movedOf(const std::string &statistic) { return statistic + "/moved"; }

  // As the function, of a micro-batch.
  void checkLabels(const std::vector<TensorView> &views, const RowName &place) const;

  // Computes the loss of a micro-batch, adds its gradients, times `weight`, to those of the step, and moves statistics
  // from where the step has moved them to; the first one begins both anew. After the last one, gradients are sums of
  // all ranks, or the part of them that this rank updates; replays have none, and so no rank needs another. Views are
  // in the order of batch(). Blocks run as `gates` say, one for each of layers(); without any, all do. Throws Error;
  // parameters, statistics and optimizer are as before then.
  double microBatch(const std::vector<TensorView> &views, double weight, MicroPlace at, const RandomPlace &random = {},
                    const std::vector<LayerGate> &gates = {}, LaunchObserver *observer = nullptr);
  // The names of the blocks that a micro-batch may drop.
  const std::vector<std::string> &layers() const { return layerNames; }
  // Whether a step may have several micro-batches.
  bool accumulates() const { return hasFirst; }
  // After a call that failed: sums of gradients, and what statistics have moved to, begin anew.
  void forgetGradients();
  // For micro-batches that are not the first ones of their gradients: statistics move from the running ones.
  void beginStatistics();
  // What micro-batches have moved statistics to, in the order of statistics().
  std::vector<Tensor> movedStatistics();
  void setMovedStatistics(const std::vector<Tensor> &values);
  // The same as forgetGradients, in the memory that they have.
  void zeroGradients();
  // Where gradients reach farthest from 0, and how far.
  std::pair<std::string, double> greatestGradient();
  // Whether ranks round gradients to f16 on their way.
  bool travelAsHalf() const;
  // Whether gradients are added up in f16.
  bool areKeptAsHalf() const;
  // Parameters and statistics of a checkpoint, without the optimizer's states. Throws Error as StateStore::restore
  // does, and where one is missing, or not of the package.
  void restoreParameters(Checkpoint &checkpoint);
  // Makes all states that checkpoints have, with their first values.
  void touchStates();
  // What a checkpoint holds of the session: views of parameters, statistics and optimizer.
  std::vector<CheckpointPart> parts();
  // SaveOptions::release for these.
  std::function<void(const void *, size_t)> releaseOfStates();
  // Throws Error(InvalidArgument) where a checkpoint lacks a tensor that the package trains with.
  void requireAll(const Checkpoint &checkpoint) const;
  // Updates the parameters by the gradients that were added up, and keeps the statistics that were moved. Widths of
  // quantized parameters go on with it, unless it was skipped. 1-bit optimizers do so in two regimes: after the steps
  // of their warm-up, gradients are left as this rank's own.
  StepResult update(const StepNumbers &numbers, LaunchObserver *observer = nullptr);
  // Whether that update, 1 for the first one, is behind the warm-up of a 1-bit optimizer, and takes this rank's own
  // gradients.
  bool isFrozenAt(int64_t step) const { return compressed && step > freezeStep; }
  // The loss and the model's outputs; nothing changes.
  Evaluation evaluate(const std::vector<TensorView> &views);

  // Where the package trains on quantized parameters: the widths that they have; else null. They begin as the package
  // was compiled.
  const BitSchedule *widths() const { return schedule ? &*schedule : nullptr; }
  // Before the first step, with other numbers than those that the package was compiled with.
  void setQuantization(const QuantizationSettings &settings);
  // Before the update: by how much periods grow for each block that drops a bit with it.
  void setFactors(const std::vector<int64_t> &factors) { schedule->setFactors(factors); }
  // Directions of power iteration (Curvature.h): normal ones, and one step, which gives v H v for the layer.
  void drawDirections(uint64_t seed);
  double curvature(const std::vector<TensorView> &views, int64_t layer, double weight);
  // What rounding draws by, where it is stochastic.
  void setRoundingSeed(uint64_t seed) { roundingSeed = seed; }
  // What quantized parameters are rounded to, by ONNX name: what micro-batches and evaluations read.
  std::vector<std::pair<std::string, Tensor>> images();
  // Puts the widths among what a checkpoint keeps.
  void keepWidths(TrainingProgress &progress) const;
  // Those that a checkpoint has, for setWidths. Throws Error where it has none and the package quantizes, or the other
  // way round.
  std::optional<BitSchedule> widthsIn(const Checkpoint &checkpoint) const;
  void setWidths(std::optional<BitSchedule> widths) { schedule = std::move(widths); }

private:
  // The views of an entry's inputs: the batch's by name, and own numbers.
  struct Number {
    std::string name;
    double value;
    int64_t integer = 0;           // for inputs of integers
    std::vector<double> list = {}; // for inputs of an axis
  };
  std::vector<std::string> tensorsOf(const StateInfo &state) const;
  void addWidths(std::vector<Number> &numbers) const;
  // The entries that update.
  std::vector<size_t> updates() const {
    return compressed ? std::vector<size_t>{updater, *compressed} : std::vector<size_t>{updater};
  }
  StepResult updateFrozen(std::vector<Number> numbers, LaunchObserver *observer);
  std::vector<TensorView> bind(const EntryInfo &entry, const std::vector<TensorView> &views,
                               const std::vector<Number> &numbers, std::vector<Tensor> &storage) const;

  Session live;
  size_t micro, updater, evaluator;
  std::optional<size_t> compressed; // the update after the warm-up of 1-bit optimizers
  int64_t freezeStep = 0;           // updates of that warm-up
  std::vector<TensorInfo> fields;
  std::vector<std::string> names, running, kept, outputNames;
  std::vector<std::string> gradients; // the states that hold them
  bool hasFirst = false;
  std::vector<std::string> layerNames;
  std::vector<bool> hasGradients; // by layer: its gradients are those of the step, or zeros; else what was there before
  std::optional<BitSchedule> schedule;
  uint64_t roundingSeed = 0;
};

} // namespace ds
#endif
