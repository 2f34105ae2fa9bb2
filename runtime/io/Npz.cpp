#include "runtime/io/Npz.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

#include <algorithm>
#include <set>

namespace ds {
namespace {

constexpr int64_t chunkElements = int64_t(1) << 16; // of what is converted on its way

} // namespace

NpzReader::NpzReader(const std::string &path) : path(path), zip(path) {
  std::set<std::string> names;
  for (const ZipReader::Member &member : zip.members())
    annotated(path, [&] {
      const std::string suffix = ".npy";
      size_t length = member.name.size();
      if (length < suffix.size() || member.name.compare(length - suffix.size(), suffix.size(), suffix) != 0)
        fail(ErrorCode::BadFile, "member ", inQuotes(member.name), " is not an npy file");
      std::string name = member.name.substr(0, length - suffix.size());
      if (!names.insert(name).second)
        fail(ErrorCode::BadFile, "member ", inQuotes(member.name), " occurs twice");
      annotated(escaped(name), [&] {
        ZipReader::Stream stream(zip, member);
        NpyHeader header = readNpyHeader(stream.left(), [&](void *data, size_t bytes) { stream.read(data, bytes); });
        list.push_back({name, header.type, header.shape});
      });
    });
}

void NpzReader::transfer(size_t item, ElementType as, uint8_t *data) const {
  annotated(path + ": " + escaped(list[item].name), [&] {
    ZipReader::Stream stream(zip, zip.members()[item]);
    NpyRead read = [&](void *to, size_t bytes) { stream.read(to, bytes); };
    NpyHeader header = readNpyHeader(stream.left(), read);
    if (header.type != list[item].type || header.shape != list[item].shape)
      fail(ErrorCode::BadFile, "the file changed while it was read");
    int64_t count = elementCount(header.shape);
    if (header.type == as && data) {
      readNpyData(header, read, static_cast<size_t>(count), data);
    } else {
      int64_t step = header.isFortran ? count : std::min(count, chunkElements);
      Tensor chunk(header.type, {step}), narrow(as, {as == header.type ? 0 : step});
      for (int64_t at = 0; at < count; at += step) {
        int64_t length = std::min(step, count - at);
        readNpyData(header, read, static_cast<size_t>(length), chunk.data());
        if (as != header.type)
          convertElements(header.type, chunk.data(), as,
                          data ? data + static_cast<size_t>(at) * typeSize(as) : narrow.data(), length, at);
      }
    }
    stream.finish();
  });
}

std::vector<NamedTensor> readNpz(const std::string &path) {
  NpzReader reader(path);
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < reader.items().size(); ++i) {
    const TensorSource::Item &item = reader.items()[i];
    tensors.push_back({item.name, Tensor(item.type, item.shape)});
    reader.read(i, item.type, tensors.back().tensor.data());
  }
  return tensors;
}

void writeNpz(const std::string &path, const std::vector<NamedView> &tensors) {
  ZipWriter zip(path);
  for (const auto &[name, view] : tensors) {
    ElementType type = npyType(view.type);
    std::string header = npyHeader(type, view.shape);
    if (type == view.type) {
      zip.add(name + ".npy", header, view.data, view.bytes());
      continue;
    }
    int64_t count = elementCount(view.shape);
    zip.add(name + ".npy", header, [&, from = view.type, data = static_cast<const uint8_t *>(view.data)](auto &take) {
      Tensor chunk(type, {std::min(count, chunkElements)});
      for (int64_t at = 0; at < count; at += chunkElements) {
        int64_t length = std::min(chunkElements, count - at);
        convertElements(from, data + static_cast<size_t>(at) * typeSize(from), type, chunk.data(), length, at);
        take(chunk.data(), static_cast<size_t>(length) * typeSize(type));
      }
    });
  }
  zip.commit();
}

void writeNpz(const std::string &path, const std::vector<NamedTensor> &tensors) {
  std::vector<NamedView> views;
  for (const NamedTensor &item : tensors)
    views.push_back({item.name, item.tensor.view()});
  writeNpz(path, views);
}

} // namespace ds
