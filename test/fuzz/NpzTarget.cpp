// Any bytes read as .npz give tensors or an Error.
#include "runtime/core/Error.h"
#include "runtime/io/Npz.h"
#include "test/fuzz/TemporaryFile.h"
#include "test/fuzz/ZipMutator.h"

using namespace deepstride::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static TemporaryFile file("tensors.npz");
  file.write(data, size);
  try {
    for (const ds::NamedTensor &item : ds::readNpz(file.path()))
      if (ds::byteCount(item.tensor.getType(), item.tensor.getShape()) != item.tensor.bytes())
        finding("a tensor's bytes are not those of its shape");
  } catch (const ds::Error &) {
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string bytes(reinterpret_cast<char *>(data), size);
  mutateZip(bytes, random);
  return store(bytes, data, size, maxSize);
}
