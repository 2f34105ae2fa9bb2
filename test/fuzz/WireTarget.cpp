// Any bytes read as a model give a ModelFile whose tensors can be located, or an Error; with the usual limits and with
// small ones, whose ends small inputs reach.
#include "frontends/onnx/reader/ModelFile.h"
#include "test/fuzz/ProtoMutator.h"
#include "test/fuzz/TemporaryFile.h"

using namespace deepstride::fuzz;
using namespace deepstride::onnx;

namespace {

void locateAll(ModelFile &file, const ::onnx::GraphProto &graph) {
  auto locate = [&](const ::onnx::TensorProto &tensor) {
    llvm::Expected<TensorData> data = file.locate(tensor);
    if (!data)
      return llvm::consumeError(data.takeError());
    bool isString = data->element->bits == 0;
    if (!isString &&
        (data->elements * data->element->bits + 7) / 8 != (data->inFile ? data->range.length : data->bytes.size()))
      finding("a tensor's bytes are not those of its dimensions");
  };
  for (const auto &tensor : graph.initializer())
    locate(tensor);
  for (const auto &node : graph.node())
    for (const auto &attribute : node.attribute()) {
      if (attribute.has_t())
        locate(attribute.t());
      if (attribute.has_g())
        locateAll(file, attribute.g());
    }
}

void load(const std::string &path, const ImportLimits &limits) {
  llvm::Expected<std::unique_ptr<ModelFile>> file = ModelFile::load(path, limits);
  if (!file)
    return llvm::consumeError(file.takeError());
  locateAll(**file, (*file)->model().graph());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static TemporaryFile file("model.onnx"), external("data.bin");
  static const bool isWritten = (external.write(std::string(4096, 'd').data(), 4096), true);
  (void)isWritten;
  file.write(data, size);
  load(file.path(), ImportLimits());
  ImportLimits small;
  small.depth = 2;
  small.fields = 100;
  small.structureBytes = 4096;
  small.elementBytes = 16;
  load(file.path(), small);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  return mutateProto(data, size, maxSize, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize, const uint8_t *second,
                                            size_t secondSize, uint8_t *out, size_t maxSize, unsigned seed) {
  return crossProtos(first, firstSize, second, secondSize, out, maxSize, seed);
}
