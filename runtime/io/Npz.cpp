#include "runtime/io/Npz.h"

#include "runtime/core/Error.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Zip.h"

#include <set>

namespace ds {

std::vector<NamedTensor> readNpz(const std::string &path) {
  ZipReader zip(path);
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  std::vector<uint8_t> buffer;
  for (const ZipReader::Member &member : zip.members())
    annotated(path, [&] {
      const std::string suffix = ".npy";
      size_t length = member.name.size();
      if (length < suffix.size() || member.name.compare(length - suffix.size(), suffix.size(), suffix) != 0)
        fail(ErrorCode::BadFile, "member '", member.name, "' is not an npy file");
      std::string name = member.name.substr(0, length - suffix.size());
      if (!names.insert(name).second)
        fail(ErrorCode::BadFile, "member '", member.name, "' occurs twice");
      const uint8_t *data = zip.read(member, buffer);
      tensors.push_back({name, annotated(name, [&] { return parseNpy(data, member.bytes); })});
    });
  return tensors;
}

void writeNpz(const std::string &path, const std::vector<NamedTensor> &tensors) {
  ZipWriter zip(path);
  for (const NamedTensor &item : tensors) {
    ElementType type = npyType(item.tensor.getType());
    std::string header = npyHeader(type, item.tensor.getShape());
    if (type == item.tensor.getType()) {
      zip.add(item.name + ".npy", header, item.tensor.data(), item.tensor.bytes());
      continue;
    }
    Tensor widened = item.tensor.converted(type);
    zip.add(item.name + ".npy", header, widened.data(), widened.bytes());
  }
  zip.commit();
}

} // namespace ds
