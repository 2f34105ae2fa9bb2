// Looks at checkpoints for people: is it whole, what is in it, how do two differ. An empty tag means the latest one.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINTTOOLS_H
#define DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINTTOOLS_H

#include "runtime/training/Checkpoint.h"

#include <optional>
#include <string>
#include <vector>

namespace ds {

// What is damaged: a line for each tensor, or one where the checkpoint cannot be opened. Throws Error only where there
// is no such checkpoint.
std::vector<std::string> verifyCheckpoint(const std::string &folder, const std::string &tag);

// What is in a checkpoint; reads no tensor. The text fits a screen where the model does.
std::string inspectCheckpoint(const Checkpoint &checkpoint);
nlohmann::json inspectCheckpointJson(const Checkpoint &checkpoint);

struct TensorDifference {
  enum class Kind { Values, Type, Shape, OnlyFirst, OnlySecond };
  std::string name;
  Kind kind = Kind::Values;
  std::string first, second; // the types and shapes
  double maximum = 0;        // values: of |a - b|; NaN where one is NaN and the other is not
  int64_t differing = 0, elements = 0;
  int64_t place = 0; // of the maximum
};

struct CheckpointDifference {
  std::vector<std::string> progress;     // "step: 10 and 20"
  std::vector<TensorDifference> tensors; // those that differ
  size_t equal = 0;                      // those that do not

  bool isNone() const { return progress.empty() && tensors.empty(); }
};

CheckpointDifference compareCheckpoints(const Checkpoint &first, const Checkpoint &second);
std::string differenceText(const CheckpointDifference &difference);
nlohmann::json differenceJson(const CheckpointDifference &difference);

} // namespace ds
#endif
