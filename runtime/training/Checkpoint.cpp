#include "runtime/training/Checkpoint.h"

#include "runtime/core/Checksums.h"
#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/OfFile.h"
#include "runtime/core/Text.h"
#include "runtime/training/CheckpointFolder.h"

#include <algorithm>
#include <cstring>

namespace ds {

static constexpr size_t maxInfoBytes = size_t(1) << 30;

Checkpoint::Checkpoint(const std::string &folder, const std::string &tag) : place(checkpointPath(folder, tag)) {
  std::string path = place + "/" + checkpointInfoName;
  std::string text = readTextFile(path, maxInfoBytes);
  info = annotated(path, [&] { return readCheckpointInfo(text); });
  for (const CheckpointTensor &tensor : info.tensors) { // by name
    list.push_back({tensor.name, tensor.type, tensor.shape});
    Source &source = sources.emplace_back();
    source.tensor = &tensor;
    for (const CheckpointPiece &piece : tensor.pieces)
      source.pieces.push_back({&piece, nullptr, 0, std::vector<bool>(piece.digests.size())});
  }
  for (const CheckpointFile &file : info.files)
    ofFile(place + "/" + file.name, [&] { openFile(file); });
  for (const Source &source : sources)
    for (const Mapped &piece : source.pieces)
      if (!piece.file)
        fail(ErrorCode::BadFile, place, "/", piece.piece->file, ": tensor '", pieceName(*source.tensor, *piece.piece),
             "' is missing");
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
  std::map<std::string, std::pair<const CheckpointTensor *, Mapped *>> expected;
  for (Source &source : sources)
    for (Mapped &piece : source.pieces)
      if (piece.piece->file == file.name)
        expected.emplace(pieceName(*source.tensor, *piece.piece), std::pair(source.tensor, &piece));
  for (size_t i = 0; i < reader.items().size(); ++i) {
    const Item &item = reader.items()[i];
    auto known = expected.find(item.name);
    if (known == expected.end())
      fail(ErrorCode::BadFile, "tensor ", inQuotes(item.name), " is not in ", checkpointInfoName);
    auto [tensor, piece] = known->second;
    Shape shape = pieceShape(*tensor, *piece->piece);
    if (safetensorsType(tensor->type) != item.type || shape != item.shape)
      fail(ErrorCode::BadFile, "tensor '", item.name, "': found ", typeName(item.type), " ", listText(item.shape),
           ", expected ", typeName(tensor->type), " ", listText(shape));
    piece->file = &reader;
    piece->item = i;
  }
}

void Checkpoint::verify(const CheckpointTensor &tensor, Mapped &mapped, int64_t begin, int64_t end) const {
  const CheckpointPiece &piece = *mapped.piece;
  const uint8_t *data = static_cast<const uint8_t *>(mapped.file->view(mapped.item).data);
  uint64_t size = typeSize(tensor.type), bytes = static_cast<uint64_t>(piece.end - piece.begin) * size;
  uint64_t first = static_cast<uint64_t>(begin - piece.begin) * size,
           last = static_cast<uint64_t>(end - piece.begin) * size;
  for (uint64_t i = first / checkpointChunk; i * checkpointChunk < last; ++i) {
    if (mapped.checkedChunks[i])
      continue;
    uint64_t from = i * checkpointChunk, to = std::min(bytes, from + checkpointChunk);
    if (sha256Hex(data + from, static_cast<size_t>(to - from)) != piece.digests[i])
      fail(ErrorCode::BadFile, place, "/", piece.file, ": tensor '", pieceName(tensor, piece),
           "': checksum mismatch in bytes ", from, " to ", to, " of ", bytes, ", which begin at byte ",
           mapped.file->offset(mapped.item) + from, " of the file");
    mapped.checkedChunks[i] = true;
  }
}

void Checkpoint::check(size_t item, ElementType as) const { checkRange(item, as, 0, elementCount(list[item].shape)); }

void Checkpoint::checkRange(size_t item, ElementType as, int64_t begin, int64_t end) const {
  if (as != list[item].type) {
    Tensor scratch(as, {end - begin});
    return readRange(item, as, begin, end, scratch.data());
  }
  for (Mapped &mapped : sources[item].pieces)
    if (begin < mapped.piece->end && end > mapped.piece->begin)
      verify(*sources[item].tensor, mapped, std::max(begin, mapped.piece->begin), std::min(end, mapped.piece->end));
}

void Checkpoint::read(size_t item, ElementType as, void *data) const {
  readRange(item, as, 0, elementCount(list[item].shape), data);
}

void Checkpoint::readRange(size_t item, ElementType as, int64_t begin, int64_t end, void *data) const {
  const CheckpointTensor &tensor = *sources[item].tensor;
  size_t size = typeSize(tensor.type), newSize = typeSize(as);
  if (begin < 0 || end < begin || end > elementCount(tensor.shape))
    fail(ErrorCode::InvalidArgument, "tensor '", tensor.name, "': elements ", begin, " to ", end, ", expected some of ",
         elementCount(tensor.shape));
  for (Mapped &mapped : sources[item].pieces) {
    int64_t from = std::max(begin, mapped.piece->begin), to = std::min(end, mapped.piece->end);
    if (from >= to)
      continue;
    verify(tensor, mapped, from, to);
    const uint8_t *source = static_cast<const uint8_t *>(mapped.file->view(mapped.item).data) +
                            static_cast<size_t>(from - mapped.piece->begin) * size;
    uint8_t *target = static_cast<uint8_t *>(data) + static_cast<size_t>(from - begin) * newSize;
    if (as == tensor.type)
      std::memcpy(target, source, static_cast<size_t>(to - from) * size);
    else
      annotated("tensor '" + tensor.name + "'",
                [&] { convertElements(tensor.type, source, as, target, to - from, from); });
  }
}

TensorView Checkpoint::view(size_t item) const {
  Source &source = sources[item];
  const CheckpointTensor &tensor = *source.tensor;
  check(item, tensor.type);
  if (source.pieces.size() == 1)
    return {tensor.type, tensor.shape, source.pieces[0].file->view(source.pieces[0].item).data};
  if (!source.whole) {
    source.whole = std::make_unique<Tensor>(tensor.type, tensor.shape);
    read(item, tensor.type, source.whole->data());
  }
  return source.whole->view();
}

void Checkpoint::select(const std::function<bool(const std::string &name)> &isWanted) {
  std::vector<Item> items;
  std::vector<Source> found;
  for (size_t i = 0; i < list.size(); ++i)
    if (isWanted(list[i].name)) {
      items.push_back(std::move(list[i]));
      found.push_back(std::move(sources[i]));
    }
  list = std::move(items);
  sources = std::move(found);
}

} // namespace ds
