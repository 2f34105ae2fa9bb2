// Any bytes read as a TensorProto give a tensor that survives writing and reading, or an Error.
#include "runtime/core/Error.h"
#include "runtime/io/TensorProto.h"
#include "test/fuzz/ProtoMutator.h"
#include "test/fuzz/TemporaryFile.h"

#include <cstring>

using namespace deepstride::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    ds::NamedTensor item = ds::parseTensorProto(data, size);
    std::string bytes = ds::serializeTensorProto(item.name, item.tensor);
    ds::NamedTensor again = ds::parseTensorProto(bytes.data(), bytes.size());
    if (again.name != item.name || again.tensor.getType() != item.tensor.getType() ||
        again.tensor.getShape() != item.tensor.getShape() ||
        std::memcmp(again.tensor.data(), item.tensor.data(), item.tensor.bytes()) != 0)
      finding("a tensor that was read is written as another one");
  } catch (const ds::Error &) {
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  return mutateProto(data, size, maxSize, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize, const uint8_t *second,
                                            size_t secondSize, uint8_t *out, size_t maxSize, unsigned seed) {
  return crossProtos(first, firstSize, second, secondSize, out, maxSize, seed);
}
