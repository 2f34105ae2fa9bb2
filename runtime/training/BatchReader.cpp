#include "runtime/training/BatchReader.h"

#include "runtime/core/Error.h"

#include <algorithm>

namespace ds {

static constexpr int64_t maxBatch = int64_t(1) << 24; // a batch lists its samples

std::vector<TensorView> Batch::views() const {
  std::vector<TensorView> result;
  for (const Tensor &tensor : tensors)
    result.push_back(tensor.view());
  return result;
}

std::string Batch::where() const {
  if (!name.empty())
    return name;
  constexpr size_t shown = 8;
  std::string text = concat("epoch ", epoch, samples.size() == 1 ? ", sample" : ", samples");
  for (size_t i = 0; i < std::min(samples.size(), shown); ++i)
    text += (i ? ", " : " ") + std::to_string(samples[i]);
  return samples.size() > shown ? text + concat(" and ", samples.size() - shown, " more") : text;
}

BatchReader::BatchReader(std::shared_ptr<const Dataset> data, const Sampler &sampler, int64_t batchSize, LastBatch last)
    : source(std::move(data)), order(sampler), size(batchSize), last(last) {
  if (batchSize < 1 || batchSize > maxBatch)
    fail(ErrorCode::InvalidArgument, "found batches of ", batchSize, ", expected 1 to ", maxBatch);
  int64_t samples = order.samples();
  if (samples != source->samples())
    fail(ErrorCode::InvalidArgument, "found a sampler of ", samples, " samples, expected ", source->samples());
  if (last == LastBatch::Skipped && samples < batchSize)
    fail(ErrorCode::InvalidArgument, "found ", samples, " samples, expected at least one batch of ", batchSize,
         ", since smaller ones are skipped");
  for (const DataField &field : source->fields()) {
    if (field.batchSize && *field.batchSize != batchSize)
      fail(ErrorCode::InvalidArgument, "found batches of ", batchSize, ", expected ", *field.batchSize, ": input '",
           field.name, "' has no other size");
    if (field.batchSize && last == LastBatch::Smaller && samples % batchSize != 0)
      fail(ErrorCode::InvalidArgument, "found ", samples, " samples, expected a multiple of ", batchSize,
           ", or that a smaller last batch is skipped: input '", field.name, "' has no other size");
  }
}

int64_t BatchReader::batchesPerEpoch() const {
  return order.samples() / size + (last == LastBatch::Smaller && order.samples() % size != 0 ? 1 : 0);
}

LoaderPosition BatchReader::normalized(LoaderPosition position) const {
  int64_t left = order.samples() - position.position;
  bool isOver = last == LastBatch::Skipped ? left < size : left == 0;
  return isOver ? LoaderPosition{position.epoch + 1, 0} : position;
}

bool BatchReader::next(Batch &batch) {
  LoaderPosition before = at;
  std::optional<BatchPlace> place = pass();
  if (!place)
    return false;
  try {
    read(*place, batch);
  } catch (...) {
    at = before;
    throw;
  }
  return true;
}

std::optional<BatchPlace> BatchReader::pass() {
  LoaderPosition from = normalized(at);
  if (!order.hasEpoch(from.epoch))
    return std::nullopt;
  int64_t count = std::min(size, order.samples() - from.position);
  at = {from.epoch, from.position + count};
  return BatchPlace{from.epoch, from.position, count};
}

void BatchReader::read(const BatchPlace &place, Batch &batch) const {
  batch.epoch = place.epoch;
  batch.samples.clear();
  for (int64_t i = 0; i < place.samples; ++i)
    batch.samples.push_back(order.at(place.epoch, place.position + i));
  const std::vector<DataField> &fields = source->fields();
  batch.tensors.resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    Shape shape = fields[i].row;
    shape.insert(shape.begin(), place.samples);
    batch.tensors[i].reset(fields[i].type, std::move(shape));
    uint8_t *to = batch.tensors[i].data();
    for (int64_t sample : batch.samples) {
      source->read(i, sample, to);
      to += fields[i].rowBytes();
    }
  }
}

void BatchReader::seek(const LoaderPosition &position) {
  if (position.epoch < 0 || position.position < 0 || position.position > order.samples())
    fail(ErrorCode::InvalidArgument, "cannot go on at sample ", position.position, " of epoch ", position.epoch,
         ": the data has ", order.samples(), " samples an epoch");
  at = position;
}

} // namespace ds
