// Opens and maps the files that make up a model. A location of external data comes from the model
// and is hostile until proven otherwise: it must name a regular file below the model's folder,
// reached without `..`, symbolic link or hard link, and every check is made on the opened file.

#ifndef FRONTENDS_ONNX_READER_FILEACCESS_H
#define FRONTENDS_ONNX_READER_FILEACCESS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <utility>

namespace deepstride::onnx {

/// An error that consists of its text.
llvm::Error refuse(const llvm::Twine &what);

/// `text` in single quotes, made printable and cut to a bearable length.
std::string quoted(llvm::StringRef text);

/// Owns the descriptor of a file that was opened for reading.
class OpenFile {
public:
  OpenFile() = default;
  explicit OpenFile(int descriptor) : descriptor(descriptor) {}
  OpenFile(OpenFile &&other) : descriptor(std::exchange(other.descriptor, -1)) {}
  OpenFile &operator=(OpenFile &&other) {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~OpenFile();

  int get() const { return descriptor; }
  llvm::Expected<uint64_t> size() const;
  /// Reads exactly `length` bytes from `offset`.
  llvm::Expected<std::string> read(uint64_t offset, uint64_t length) const;
  /// Whether the file has nothing there, and reads as zeros, as far as its system says.
  bool isHole(uint64_t offset, uint64_t length) const;

private:
  int descriptor = -1;
};

/// A whole file mapped read-only for as long as the object lives.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) : data(std::exchange(other.data, {})) {}
  MappedFile &operator=(MappedFile &&other) {
    std::swap(data, other.data);
    return *this;
  }
  ~MappedFile();

  static llvm::Expected<MappedFile> map(const OpenFile &file);
  llvm::ArrayRef<uint8_t> bytes() const { return data; }

private:
  llvm::ArrayRef<uint8_t> data;
};

/// Opens a file that the user named: it may be a link, but not a folder, pipe or device.
llvm::Expected<OpenFile> openNamedFile(const std::string &path);

/// The folder of a file, "." for a bare name.
std::string folderOf(llvm::StringRef path);

/// How openBelow gets beneath the folder: `openat2` of Linux 5.6, or a walk component by component.
enum class Beneath { Kernel, Walk };

/// Opens the file that a model names by `location`, relative to its `folder`.
llvm::Expected<OpenFile> openBelow(const std::string &folder, llvm::StringRef location, Beneath how = Beneath::Kernel);

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_FILEACCESS_H
