// A package of --mode=train as a loop uses it: micro-batches, updates, evaluations. The package computes, this calls.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_TRAINER_H
#define DEEPSTRIDE_RUNTIME_TRAINING_TRAINER_H

#include "runtime/core/Session.h"

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
  double gradNorm = 0;  // of all gradients, over the loss scale, before clipping
  bool isFinite = true; // where it is not, nothing was updated
};

struct Evaluation {
  double loss = 0;                  // mean over what was counted
  int64_t counted = 0, correct = 0; // labels; 0 where the loss is not of classes
  std::vector<Tensor> outputs;      // the model's own
};

class Trainer {
public:
  // Throws Error(InvalidArgument) where the package was not compiled for training.
  Trainer(std::shared_ptr<const Package> package, const SessionOptions &options = {});

  Session &session() { return live; }
  const Package &package() const { return live.package(); }

  // What a micro-batch holds, in order: the model's inputs, then labels where the loss has some.
  const std::vector<TensorInfo> &batch() const { return fields; }
  // The parameters' states, by ONNX name; the optimizer's states are NAME/exp_avg and so on, gradients NAME/gradient.
  std::vector<std::string> parameters() const;

  // Computes the loss of a micro-batch and adds its gradients, times `weight`, to those of the step; `isFirst` begins
  // them anew. Views are in the order of batch(). Throws Error; parameters and optimizer are as before then.
  double microBatch(const std::vector<TensorView> &views, double weight, bool isFirst);
  // Updates the parameters by the gradients that were added up.
  StepResult update(const StepNumbers &numbers);
  // The loss and the model's outputs; nothing changes.
  Evaluation evaluate(const std::vector<TensorView> &views);

private:
  // The views of an entry's inputs: the batch's by name, and own numbers.
  struct Number {
    std::string name;
    double value;
  };
  std::vector<TensorView> bind(const EntryInfo &entry, const std::vector<TensorView> &views,
                               const std::vector<Number> &numbers, std::vector<Tensor> &storage) const;

  Session live;
  size_t micro, updater, evaluator;
  std::vector<TensorInfo> fields;
};

} // namespace ds
#endif
