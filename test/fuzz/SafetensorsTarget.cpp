// Any bytes read as safetensors give tensors that survive writing and reading, or an Error.
#include "runtime/core/Error.h"
#include "runtime/io/Safetensors.h"
#include "test/fuzz/JsonMutator.h"
#include "test/fuzz/TemporaryFile.h"

#include <cstring>

using namespace deepstride::fuzz;

namespace {

constexpr size_t lengthBytes = 8;

void roundTrip(const ds::SafetensorsReader &reader) {
  std::vector<ds::NamedView> views;
  for (size_t i = 0; i < reader.items().size(); ++i)
    views.push_back({reader.items()[i].name, reader.view(i)});
  std::string path = temporaryFolder() + "/again.safetensors";
  ds::writeSafetensors(path, views, reader.metadata());
  ds::SafetensorsReader again(path);
  if (again.items().size() != views.size() || again.metadata() != reader.metadata())
    finding("other tensors are written than were read");
  for (size_t i = 0; i < views.size(); ++i) {
    const ds::TensorSource::Item &item = again.items()[i];
    for (const ds::NamedView &view : views)
      if (view.name == item.name && (view.view.type != item.type || view.view.shape != item.shape ||
                                     std::memcmp(view.view.data, again.view(i).data, view.view.bytes()) != 0))
        finding("a tensor that was read is written as another one");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static TemporaryFile file("tensors.safetensors");
  file.write(data, size);
  try {
    ds::SafetensorsReader reader(file.path());
    uint64_t bytes = reader.headerBytes();
    for (size_t i = 0; i < reader.items().size(); ++i) {
      const ds::TensorSource::Item &item = reader.items()[i];
      bytes += ds::byteCount(item.type, item.shape);
      ds::Tensor copy(ds::ElementType::F32, item.shape);
      reader.read(i, ds::ElementType::F32, copy.data());
    }
    if (bytes != size)
      finding("a byte belongs to no tensor, or to two");
    roundTrip(reader);
  } catch (const ds::Error &error) {
    expectOneLine(error.what());
  }
  return 0;
}

/// The header is changed as JSON, and its length mostly told as it is.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string bytes(reinterpret_cast<char *>(data), size);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), std::min(size, lengthBytes));
  if (size < lengthBytes || length > size - lengthBytes || random.oneIn(8)) {
    random.mutate(bytes);
  } else {
    std::string header = bytes.substr(lengthBytes, length), rest = bytes.substr(lengthBytes + length);
    random.oneIn(4) ? random.mutate(rest) : mutateJson(header, random);
    length = header.size();
    bytes = std::string(reinterpret_cast<char *>(&length), lengthBytes) + header + rest;
  }
  return store(bytes, data, size, maxSize);
}
