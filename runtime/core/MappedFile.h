// Files: mapped for reading, read part by part, and written so that they appear under their name only when complete.
#ifndef DEEPSTRIDE_RUNTIME_CORE_MAPPEDFILE_H
#define DEEPSTRIDE_RUNTIME_CORE_MAPPEDFILE_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace ds {

// Whether something, or a folder, is there. Where the system does not say (a folder that may not be searched, say),
// both throw Error(Io) naming the path: std::filesystem's own would look like a bug of ours.
bool isThere(const std::string &path);
bool isFolder(const std::string &path);

// Read by parts, into memory that is already there: for files as large as what they are read into.
class InputFile {
public:
  explicit InputFile(const std::string &path); // throws Error(Io) naming the path
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;
  ~InputFile();

  // Throws Error naming the path when the file ends before, or cannot be read.
  void read(uint64_t offset, void *data, size_t bytes) const;

private:
  friend class MappedFile;
  std::string path;
  int descriptor = -1;
};

// Read-only private mapping. The bytes live as long as the object; truncating the file meanwhile is not survivable, as
// with every mapped file.
class MappedFile {
public:
  MappedFile() = default;
  explicit MappedFile(const std::string &path) : MappedFile(InputFile(path)) {}
  explicit MappedFile(const InputFile &file); // throws Error(Io) naming the path
  MappedFile(MappedFile &&other) noexcept { *this = static_cast<MappedFile &&>(other); }
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  // Bytes of somebody else's, which live longer.
  static MappedFile over(const void *data, size_t size);

  const uint8_t *data() const { return bytes; }
  size_t size() const { return length; }
  bool isOfFile() const { return isMapping; }
  void willNeed(size_t offset, size_t count) const; // asks the system to read ahead
  // Says that bytes will not be read soon: whole pages of them need not stay in memory. They come back when they are
  // read.
  void release(size_t offset, size_t count) const;

private:
  const uint8_t *bytes = nullptr;
  size_t length = 0;
  bool isMapping = false; // what others have is neither unmapped nor advised upon
};

// A file without a name, which commit() gives it; without commit() nothing remains, however the process ends. Where the
// file system has no such files, it lies under a temporary name beside its destination. A destination that is no
// regular file, such as /dev/stdout, is written to as it is. The file's permissions follow the umask.
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path);
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;
  ~AtomicFile();

  void write(const void *data, size_t bytes);
  size_t position() const { return written; }
  void commit();

private:
  [[noreturn]] void refuse(const char *what) const;
  // A name beside the destination that nothing has yet; tries `make` with one after the other until it succeeds.
  template <typename Make> bool withFreeName(Make make);

  std::string path, temporary;
  int descriptor = -1;
  bool isStream = false;
  size_t written = 0;
};

std::string readTextFile(const std::string &path, size_t limit);

} // namespace ds
#endif
