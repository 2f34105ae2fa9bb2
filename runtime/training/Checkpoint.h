// One checkpoint, open for reading: logical tensors, whichever ranks wrote what of them, read so that no damaged byte
// goes unseen. CheckpointSaving.h writes it, CheckpointFolder.h has the layout.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINT_H
#define DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINT_H

#include "runtime/core/StateStore.h"
#include "runtime/io/Safetensors.h"
#include "runtime/training/CheckpointInfo.h"
#include "runtime/training/CheckpointSaving.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ds {

// As a TensorSource it goes to StateStore::restore. Opening checks everything but the tensors' bytes, and those are
// checked when they are first used, by chunks: what a rank does not need it does not read. For one thread at a time.
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
  void checkRange(size_t item, ElementType as, int64_t begin, int64_t end) const override;
  void readRange(size_t item, ElementType as, int64_t begin, int64_t end, void *data) const override;
  // What checkpoint.json says of an item.
  const CheckpointTensor &tensor(size_t item) const { return *sources[item].tensor; }
  // All of it, checked: in the mapped file, or where the tensor is cut put together in memory, until release().
  TensorView view(size_t item) const;
  void release(size_t item) const { sources[item].whole.reset(); }

  void select(const std::function<bool(const std::string &name)> &isWanted);

private:
  struct Mapped {
    const CheckpointPiece *piece;
    const SafetensorsReader *file;
    size_t item; // in the file
    std::vector<bool> checkedChunks;
  };
  struct Source {
    const CheckpointTensor *tensor;
    std::vector<Mapped> pieces;
    std::unique_ptr<Tensor> whole;
  };
  void openFile(const CheckpointFile &file);
  void verify(const CheckpointTensor &tensor, Mapped &piece, int64_t begin, int64_t end) const;

  std::string place;
  CheckpointInfo info;
  std::vector<std::unique_ptr<SafetensorsReader>> files;
  std::vector<Item> list;
  mutable std::vector<Source> sources; // of each item
};

} // namespace ds
#endif
