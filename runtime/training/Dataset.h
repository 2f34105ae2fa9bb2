// What a training loop reads: samples, each with a row for every input of a package. Opening looks at all files and
// refuses what does not fit the inputs; rows are then had in the inputs' types.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_DATASET_H
#define DEEPSTRIDE_RUNTIME_TRAINING_DATASET_H

#include "runtime/core/Manifest.h"
#include "runtime/core/Tensor.h"

#include <memory>
#include <string>
#include <vector>

namespace ds {

struct DataField {
  std::string name;
  ElementType type = ElementType::F32;
  Shape row;                        // of one sample: without the first axis
  std::optional<int64_t> bound;     // values are in [0, bound)
  std::optional<int64_t> batchSize; // where the input's first axis is fixed

  size_t rowBytes() const { return byteCount(type, row); }
};

class Dataset {
public:
  virtual ~Dataset() = default;

  int64_t samples() const { return count; }
  const std::vector<DataField> &fields() const { return list; } // in the order of the inputs

  // Copies a sample's row of a field, as the field's type, to memory for it. Throws Error naming file, sample and field
  // for a value that the type cannot hold exactly. May be called by several threads at once.
  void read(size_t field, int64_t sample, void *to) const;

protected:
  virtual void readRow(size_t field, int64_t sample, void *to) const = 0;
  // The file that a sample is in, for messages.
  virtual std::string place(int64_t sample) const = 0;

  std::vector<DataField> list;
  int64_t count = 0;
};

struct DatasetOptions {
  std::string labels;      // token data: the input that gets the following tokens; empty: the last of several
  int64_t sequence = 0;    // token data: tokens of a sample; 0: as the input's axis says
  bool isShifted = true;   // token data: labels[i] is token i + 1; else token i, for models that shift themselves
  bool scalesBytes = true; // IDX: bytes for inputs of floats are divided by 255
};

// Opens files as one data set, one after the other. What they are is seen in their first bytes:
//   .npz     arrays named as the inputs are; their first axis counts samples
//   .npy     integers: [tokens], cut into windows without overlap, or [samples, tokens]
//   .jsonl   a sample a line: an object of numbers or lists of numbers, named as the inputs are
//   IDX      as of MNIST, gzipped or not: one file for each input; files of one axis go to inputs of one axis
// The inputs' first axis is that of samples; other axes that are fixed must have the data's size, and axes of the same
// symbol the same size. Throws Error: file, what, found, legal.
std::unique_ptr<Dataset> openDataset(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs,
                                     const DatasetOptions &options = {});

} // namespace ds
#endif
