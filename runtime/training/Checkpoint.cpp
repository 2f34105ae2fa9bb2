#include "runtime/training/Checkpoint.h"

#include "runtime/core/Checksums.h"
#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Text.h"
#include "runtime/training/CheckpointFolder.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace ds {
namespace {

constexpr size_t maxInfoBytes = size_t(1) << 30;

// The parts of a part, each for a file of its own.
std::vector<CheckpointPart> splitBySize(const CheckpointPart &part, uint64_t limit) {
  std::vector<CheckpointPart> files(1);
  uint64_t bytes = 0;
  for (const NamedView &tensor : part.tensors) {
    uint64_t size = tensor.view.bytes();
    if (bytes + size > limit && !files.back().tensors.empty()) {
      files.emplace_back();
      bytes = 0;
    }
    files.back().tensors.push_back(tensor);
    bytes += size;
  }
  for (size_t i = 0; i < files.size(); ++i)
    files[i].file = part.file + (i ? concat("-", i + 1) : "") + ".safetensors";
  return files;
}

// Writes a file and says what is in it.
void writeFile(const std::string &folder, const CheckpointPart &file, CheckpointInfo &info) {
  std::string path = folder + "/" + file.file;
  for (const auto &[name, view] : file.tensors) {
    if (!isTensorName(name))
      fail(ErrorCode::InvalidArgument, "tensor ", inQuotes(name),
           ": expected a name of UTF-8 without control characters");
    info.tensors.push_back({name, file.file, view.type, view.shape, checkpointDigests(view.data, view.bytes())});
  }
  writeSafetensors(path, file.tensors, {{"format", "deepstride"}});
  SafetensorsReader written(path);
  info.files.push_back(
      {file.file, written.fileBytes(), written.headerBytes(), sha256Hex(written.fileData(), written.headerBytes())});
}

} // namespace

std::string saveCheckpoint(const std::string &folder, const TrainingProgress &progress,
                           const std::vector<CheckpointPart> &parts, const SaveOptions &options) {
  std::string tag = options.tag.empty() ? concat("global_step", progress.step) : options.tag;
  CheckpointInfo info;
  info.progress = progress;
  std::set<std::string> names, files;
  for (const CheckpointPart &part : parts) {
    if (!isFileName(part.file))
      fail(ErrorCode::InvalidArgument, inQuotes(part.file), ": expected the name of a file");
    for (const NamedView &tensor : part.tensors)
      if (!names.insert(tensor.name).second)
        fail(ErrorCode::InvalidArgument, "tensor ", inQuotes(tensor.name), " occurs twice");
  }
  CheckpointSave save(folder, tag);
  for (const CheckpointPart &part : parts)
    for (const CheckpointPart &file : splitBySize(part, options.fileBytes)) {
      if (file.tensors.empty())
        continue;
      if (!files.insert(file.file).second)
        fail(ErrorCode::InvalidArgument, "two files '", file.file, "'");
      writeFile(save.path(), file, info);
    }
  std::string text = writeCheckpointInfo(info);
  AtomicFile file(save.path() + "/" + checkpointInfoName);
  file.write(text.data(), text.size());
  file.commit();
  save.publish();
  if (options.keep != 0)
    save.removeOldest(options.keep);
  return tag;
}

Checkpoint::Checkpoint(const std::string &folder, const std::string &tag) : place(checkpointPath(folder, tag)) {
  std::string path = place + "/" + checkpointInfoName;
  std::string text = readTextFile(path, maxInfoBytes);
  info = annotated(path, [&] { return readCheckpointInfo(text); });
  for (const CheckpointFile &file : info.files)
    annotated(place + "/" + file.name, [&] { openFile(file); });
  std::sort(sources.begin(), sources.end(),
            [](const Found &a, const Found &b) { return a.tensor->name < b.tensor->name; });
  for (const Found &found : sources)
    list.push_back({found.tensor->name, found.tensor->type, found.tensor->shape});
  for (size_t i = 0; i < info.tensors.size(); ++i)
    if (i == list.size() || list[i].name != info.tensors[i].name)
      fail(ErrorCode::BadFile, place, "/", info.tensors[i].file, ": tensor '", info.tensors[i].name, "' is missing");
}

void Checkpoint::openFile(const CheckpointFile &file) {
  std::string path = place + "/" + file.name;
  if (!isThere(path))
    fail(ErrorCode::BadFile, "missing");
  {
    // Before anything of it is believed.
    MappedFile bytes(path);
    if (bytes.size() != file.bytes)
      fail(ErrorCode::BadFile, "found ", bytes.size(), " bytes, expected ", file.bytes,
           bytes.size() < file.bytes ? " (truncated?)" : "");
    if (sha256Hex(bytes.data(), static_cast<size_t>(file.headerBytes)) != file.headerDigest)
      fail(ErrorCode::BadFile, "checksum mismatch in its header, bytes 0 to ", file.headerBytes);
  }
  files.push_back(std::make_unique<SafetensorsReader>(path));
  const SafetensorsReader &reader = *files.back();
  if (reader.headerBytes() != file.headerBytes)
    fail(ErrorCode::BadFile, "found a header of ", reader.headerBytes(), " bytes, expected ", file.headerBytes);
  for (size_t i = 0; i < reader.items().size(); ++i) {
    const Item &item = reader.items()[i];
    auto known = std::lower_bound(info.tensors.begin(), info.tensors.end(), item.name,
                                  [](const CheckpointTensor &a, const std::string &name) { return a.name < name; });
    if (known == info.tensors.end() || known->name != item.name || known->file != file.name)
      fail(ErrorCode::BadFile, "tensor ", inQuotes(item.name), " is not in ", checkpointInfoName);
    if (safetensorsType(known->type) != item.type || known->shape != item.shape)
      fail(ErrorCode::BadFile, "tensor '", item.name, "': found ", typeName(item.type), " ", listText(item.shape),
           ", expected ", typeName(known->type), " ", listText(known->shape));
    sources.push_back({&reader, i, &*known, false});
  }
}

void Checkpoint::verify(const Found &found) const {
  if (found.isChecked)
    return;
  const CheckpointTensor &tensor = *found.tensor;
  const uint8_t *data = static_cast<const uint8_t *>(found.file->view(found.item).data);
  uint64_t bytes = byteCount(tensor.type, tensor.shape);
  for (size_t i = 0; i < tensor.digests.size(); ++i) {
    uint64_t begin = i * checkpointChunk, end = std::min(bytes, begin + checkpointChunk);
    if (sha256Hex(data + begin, static_cast<size_t>(end - begin)) != tensor.digests[i])
      fail(ErrorCode::BadFile, place, "/", tensor.file, ": tensor '", tensor.name, "': checksum mismatch in bytes ",
           begin, " to ", end, " of ", bytes, ", which begin at byte ", found.file->offset(found.item) + begin,
           " of the file");
  }
  found.isChecked = true;
}

void Checkpoint::check(size_t item, ElementType as) const {
  verify(sources[item]);
  if (as == list[item].type)
    return;
  Tensor scratch(as, list[item].shape);
  read(item, as, scratch.data());
}

void Checkpoint::read(size_t item, ElementType as, void *data) const {
  TensorView from = view(item);
  if (as == from.type)
    std::memcpy(data, from.data, from.bytes());
  else
    annotated("tensor '" + list[item].name + "'",
              [&] { convertElements(from.type, from.data, as, data, elementCount(from.shape)); });
}

TensorView Checkpoint::view(size_t item) const {
  const Found &found = sources[item];
  verify(found);
  return {found.tensor->type, found.tensor->shape, found.file->view(found.item).data};
}

void Checkpoint::select(const std::function<bool(const std::string &name)> &isWanted) {
  std::vector<Item> items;
  std::vector<Found> found;
  for (size_t i = 0; i < list.size(); ++i)
    if (isWanted(list[i].name)) {
      items.push_back(list[i]);
      found.push_back(sources[i]);
    }
  list = std::move(items);
  sources = std::move(found);
}

} // namespace ds
