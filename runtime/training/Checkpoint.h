// Checkpoints: the tensors and the place of a training run, written so that a killed process leaves the previous one,
// and read so that no damaged byte goes unseen. docs: CheckpointFolder.h has the layout.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINT_H
#define DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINT_H

#include "runtime/core/StateStore.h"
#include "runtime/io/Safetensors.h"
#include "runtime/training/CheckpointInfo.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ds {

// Tensors that belong into one file: "parameters" becomes parameters.safetensors, and where it would grow too large
// parameters-2.safetensors and so on.
struct CheckpointPart {
  std::string file;
  std::vector<NamedView> tensors;
};

struct SaveOptions {
  std::string tag;                        // empty: global_step{n}
  unsigned keep = 0;                      // the newest that remain; 0: all
  uint64_t fileBytes = uint64_t(4) << 30; // of a file, unless one tensor alone is larger
};

// Writes a checkpoint straight from the tensors' memory, which must not change meanwhile; no copy of them is made.
// Returns the tag. After an Error `latest` names the checkpoint that it named, and all that were there are whole.
std::string saveCheckpoint(const std::string &folder, const TrainingProgress &progress,
                           const std::vector<CheckpointPart> &parts, const SaveOptions &options = {});

// One checkpoint, open for reading. As a TensorSource it goes to StateStore::restore. Opening checks everything but the
// tensors' bytes, and those are checked when a tensor is first used. For one thread at a time.
class Checkpoint : public TensorSource {
public:
  // An empty tag means the latest one. Throws Error naming the file, and the tensor and the place in it.
  Checkpoint(const std::string &folder, const std::string &tag);

  const std::string &path() const { return place; }
  const TrainingProgress &progress() const { return info.progress; }
  const CheckpointInfo &contents() const { return info; }

  // All tensors by name, or after select() those that are wanted.
  const std::vector<Item> &items() const override { return list; }
  void check(size_t item, ElementType as) const override;
  void read(size_t item, ElementType as, void *data) const override;
  // What checkpoint.json says of an item.
  const CheckpointTensor &tensor(size_t item) const { return *sources[item].tensor; }
  // In the mapped file, checked.
  TensorView view(size_t item) const;

  void select(const std::function<bool(const std::string &name)> &isWanted);

private:
  struct Found {
    const SafetensorsReader *file;
    size_t item;
    const CheckpointTensor *tensor;
    mutable bool isChecked;
  };
  void openFile(const CheckpointFile &file);
  void verify(const Found &found) const;

  std::string place;
  CheckpointInfo info;
  std::vector<std::unique_ptr<SafetensorsReader>> files;
  std::vector<Item> list;
  std::vector<Found> sources; // of each item
};

} // namespace ds
#endif
