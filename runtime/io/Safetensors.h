// safetensors: 8 bytes of header length, a JSON header that says where each tensor lies, the tensors' bytes.
#ifndef DEEPSTRIDE_RUNTIME_IO_SAFETENSORS_H
#define DEEPSTRIDE_RUNTIME_IO_SAFETENSORS_H

#include "runtime/core/MappedFile.h"
#include "runtime/core/StateStore.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ds {

using SafetensorsMetadata = std::map<std::string, std::string>; // the header's __metadata__

// Reads a file strictly: each byte after the header belongs to exactly one tensor, sizes agree with types and shapes,
// no name occurs twice. Opening reads the header only; the tensors are mapped. Items come in the order of their bytes.
// Errors name the file and the tensor.
class SafetensorsReader : public TensorSource {
public:
  explicit SafetensorsReader(const std::string &path);

  const std::vector<Item> &items() const override { return list; }
  void check(size_t item, ElementType as) const override;
  void read(size_t item, ElementType as, void *data) const override;

  // In the mapping, so that it is valid as long as the reader. Writers that do not align may have put it anywhere.
  TensorView view(size_t item) const { return {list[item].type, list[item].shape, file.data() + offsets[item]}; }
  uint64_t offset(size_t item) const { return offsets[item]; } // from the start of the file
  const SafetensorsMetadata &metadata() const { return extra; }
  size_t headerBytes() const { return header; } // with the 8 bytes of the length
  size_t fileBytes() const { return file.size(); }
  const uint8_t *fileData() const { return file.data(); }

private:
  void readHeader();

  std::string path;
  MappedFile file;
  size_t header = 0;
  std::vector<Item> list;
  std::vector<uint64_t> offsets;
  SafetensorsMetadata extra;
};

// The type that elements have in such a file: itself, or for those that the format lacks (i4, f4e2m1 and so on) the
// integer of 8 bits that they take in memory.
ElementType safetensorsType(ElementType type);

// Complete under its name or not there at all; written straight from the tensors' memory. Wide types come first, so
// that all are aligned, and the same tensors give the same bytes. Throws Error for names that occur twice or are no
// UTF-8.
void writeSafetensors(const std::string &path, const std::vector<NamedView> &tensors,
                      const SafetensorsMetadata &metadata = {});

// The same in pieces of so many bytes at most, from the beginning of each tensor on. Bytes from `begin` to `end` of a
// tensor have been written when `written` is called.
using PieceWritten = std::function<void(size_t tensor, uint64_t begin, uint64_t end)>;
void writeSafetensors(const std::string &path, const std::vector<NamedView> &tensors,
                      const SafetensorsMetadata &metadata, uint64_t pieceBytes, const PieceWritten &written);

} // namespace ds
#endif
