// Any bytes opened as training data give samples for the inputs, or an Error.
#include "runtime/core/Error.h"
#include "runtime/training/BatchReader.h"
#include "test/fuzz/JsonMutator.h"
#include "test/fuzz/TemporaryFile.h"
#include "test/fuzz/ZipMutator.h"

#include <cstring>

using namespace deepstride::fuzz;

namespace {

/// Inputs as packages have them: a classifier of numbers, one of images, a language model with and without labels.
std::vector<std::vector<ds::TensorInfo>> makeInputs() {
  ds::SymbolTable symbols{{{"b", 0}, {"s", 1}}, {}};
  auto input = [&](const char *name, ds::ElementType type, std::vector<const char *> shape) {
    ds::TensorInfo info{name, type, {}, std::nullopt};
    for (const char *size : shape)
      info.shape.push_back(ds::SizeExpr::parse(size, symbols));
    return info;
  };
  using ds::ElementType;
  std::vector<std::vector<ds::TensorInfo>> all = {
      {input("x", ElementType::F32, {"b", "2"}), input("y", ElementType::I64, {"b"})},
      {input("x", ElementType::F16, {"b", "1", "2", "s"}), input("y", ElementType::U8, {"4"})},
      {input("x", ElementType::I64, {"b", "s"}), input("y", ElementType::I64, {"b", "s"})},
      {input("x", ElementType::I32, {"b", "3"})}};
  all[2][1].bound = 100;
  return all;
}

void readSome(const std::string &path, const std::vector<ds::TensorInfo> &inputs, int64_t sequence) {
  ds::DatasetOptions options;
  options.sequence = sequence;
  std::shared_ptr<const ds::Dataset> data = ds::openDataset({path}, inputs, options);
  if (data->samples() < 1 || data->fields().size() != inputs.size())
    finding("a data set has no samples, or not those of the inputs");
  // Samples may be without elements and their number therefore anything, but a batch of others is small.
  ds::BatchReader reader(data, ds::Sampler(data->samples(), 1, true, 1), std::min<int64_t>(data->samples(), 4),
                         ds::LastBatch::Skipped);
  ds::Batch batch;
  for (int i = 0; i < 3 && reader.next(batch); ++i)
    for (size_t j = 0; j < inputs.size(); ++j)
      if (batch.tensors[j].getType() != inputs[j].type || batch.tensors[j].getShape().size() != inputs[j].shape.size())
        finding("a batch is not what the input says");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static TemporaryFile file("data");
  static const std::vector<std::vector<ds::TensorInfo>> inputs = makeInputs();
  file.write(data, size);
  for (const std::vector<ds::TensorInfo> &list : inputs)
    for (int64_t sequence : {0, 3})
      try {
        readSome(file.path(), list, sequence);
      } catch (const ds::Error &error) {
        expectOneLine(error.what());
      }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string bytes(reinterpret_cast<char *>(data), size);
  if (bytes.compare(0, 2, "PK") == 0) {
    mutateZip(bytes, random);
  } else if (bytes.compare(0, 6, "\x93NUMPY") == 0) {
    mutateNpy(bytes, random);
  } else if (size_t end = bytes.find('\n'); !bytes.empty() && bytes[0] == '{' && !random.oneIn(3)) {
    std::string line = bytes.substr(0, end), rest = end == std::string::npos ? "" : bytes.substr(end);
    mutateJson(line, random);
    bytes = line + rest;
  } else {
    random.mutate(bytes);
  }
  return store(bytes, data, size, maxSize);
}
