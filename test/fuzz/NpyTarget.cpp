// Any bytes read as .npy give a tensor that survives writing and reading, or an Error.
#include "runtime/core/Error.h"
#include "runtime/io/Npy.h"
#include "test/fuzz/TemporaryFile.h"
#include "test/fuzz/ZipMutator.h"

#include <cstring>

using namespace deepstride::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    ds::Tensor tensor = ds::parseNpy(data, size);
    std::string bytes = ds::npyHeader(tensor.getType(), tensor.getShape());
    bytes.append(reinterpret_cast<const char *>(tensor.data()), tensor.bytes());
    ds::Tensor again = ds::parseNpy(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
    if (again.getType() != tensor.getType() || again.getShape() != tensor.getShape() ||
        std::memcmp(again.data(), tensor.data(), tensor.bytes()) != 0)
      finding("a tensor that was read is written as another one");
  } catch (const ds::Error &) {
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string bytes(reinterpret_cast<char *>(data), size);
  mutateNpy(bytes, random);
  return store(bytes, data, size, maxSize);
}
