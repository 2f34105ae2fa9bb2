// Batches of a data set in the order of a sampler.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_BATCHREADER_H
#define DEEPSTRIDE_RUNTIME_TRAINING_BATCHREADER_H

#include "runtime/training/Dataset.h"
#include "runtime/training/Sampler.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ds {

struct Batch {
  int64_t epoch = 0;
  std::vector<int64_t> samples; // their numbers in the data set
  std::vector<Tensor> tensors;  // in the order of the data set's fields: [samples, row...]
  std::string name = {};        // of one that comes from no data set, which has no samples: "micro-batch 2 of the step"

  std::vector<TensorView> views() const;
  std::string where() const; // "epoch 2, samples 17, 4, 9 and 29 more", for messages
};

// Between two batches: all that resuming needs besides the sampler's seed.
struct LoaderPosition {
  int64_t epoch = 0, position = 0; // samples of the epoch that were read or left out

  bool operator==(const LoaderPosition &other) const { return epoch == other.epoch && position == other.position; }
};

// Where a batch lies in the order of the samples.
struct BatchPlace {
  int64_t epoch = 0, position = 0, samples = 0;
};

// What becomes of an epoch's last samples where they are fewer than a batch.
enum class LastBatch { Smaller, Skipped };

class BatchReader {
public:
  // Throws Error(InvalidArgument) where no batch would come or the inputs fix another size.
  BatchReader(std::shared_ptr<const Dataset> data, const Sampler &sampler, int64_t batchSize, LastBatch last);

  // Reads the next batch into a batch's memory, which is kept where it is large enough; false at the end of the last
  // epoch. After an Error the position is what it was before the call.
  bool next(Batch &batch);

  // Goes past the next batch without reading it: another rank's, or one that read() is called for. Nothing at the end
  // of the last epoch.
  std::optional<BatchPlace> pass();
  void read(const BatchPlace &place, Batch &batch) const;

  // Whether there is no other batch.
  bool isAtEnd() const { return !order.hasEpoch(normalized(at).epoch); }
  LoaderPosition position() const { return at; }
  // Throws Error(InvalidArgument) for a place that is not in the data: another data set, say.
  void seek(const LoaderPosition &position);

  int64_t batchesPerEpoch() const;
  const Dataset &data() const { return *source; }
  const Sampler &sampler() const { return order; }

private:
  // Where the next batch begins: at an epoch's end, the next epoch.
  LoaderPosition normalized(LoaderPosition position) const;

  std::shared_ptr<const Dataset> source;
  Sampler order;
  int64_t size;
  LastBatch last;
  LoaderPosition at;
};

} // namespace ds
#endif
