// Writes checkpoints so that a killed process, or a killed rank, leaves the previous one.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINTSAVING_H
#define DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINTSAVING_H

#include "runtime/training/CheckpointInfo.h"
#include "runtime/training/Ranks.h"

#include <functional>
#include <string>
#include <vector>

namespace ds {

// What a rank holds of a tensor: elements `begin` to `end` of it in row-major order, at `data`.
struct HeldTensor {
  std::string name;
  ElementType type = ElementType::F32;
  Shape shape; // of the whole
  int64_t begin = 0, end = 0;
  const void *data = nullptr;

  HeldTensor(std::string name, const TensorView &view)
      : name(std::move(name)), type(view.type), shape(view.shape), end(elementCount(view.shape)), data(view.data) {}
  HeldTensor(std::string name, ElementType type, Shape shape, int64_t begin, int64_t end, const void *data)
      : name(std::move(name)), type(type), shape(std::move(shape)), begin(begin), end(end), data(data) {}
};

// Tensors that belong into one file: "parameters" becomes parameters.safetensors, and where it would grow too large
// parameters-2.safetensors and so on; of rank 3 parameters-rank3.safetensors.
struct CheckpointPart {
  std::string file;
  std::vector<HeldTensor> tensors;
};

enum class TagValidation : uint8_t { Ignore, Warn, Fail };

struct SaveOptions {
  std::string tag;                        // empty: global_step{n}
  unsigned keep = 0;                      // the newest that remain; 0: all
  uint64_t fileBytes = uint64_t(4) << 30; // of a file, unless one tensor alone is larger
  // Where ranks would save under different tags: rank 0's counts, rank 0's counts with a warning, or an Error.
  TagValidation tags = TagValidation::Warn;
  // Memory of a tensor that will not be read any more, piece by piece: what lives in a file may go.
  std::function<void(const void *memory, size_t bytes)> release = {};
};

// Writes a checkpoint straight from the tensors' memory, which must not change meanwhile; no copy of them is made.
// Returns the tag. All ranks call it together, with the parts that they hold: elements that several hold are written by
// the first of them. After an Error, which all ranks get, `latest` names the checkpoint that it named, and all that
// were there are whole. `progress` is rank 0's. A warning goes to `warning`, where somebody wants it.
std::string saveCheckpoint(const std::string &folder, const TrainingProgress &progress,
                           const std::vector<CheckpointPart> &parts, const SaveOptions &options = {},
                           Ranks &ranks = Ranks::one(), std::string *warning = nullptr);

} // namespace ds
#endif
