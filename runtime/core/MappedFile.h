// A file mapped for reading, and a file that appears under its name only when it is complete.
#ifndef DEEPSTRIDE_RUNTIME_CORE_MAPPEDFILE_H
#define DEEPSTRIDE_RUNTIME_CORE_MAPPEDFILE_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace ds {

// Read-only private mapping. The bytes live as long as the object; truncating the file meanwhile is not survivable, as
// with every mapped file.
class MappedFile {
public:
  MappedFile() = default;
  explicit MappedFile(const std::string &path); // throws Error(Io) naming the path
  MappedFile(MappedFile &&other) noexcept { *this = static_cast<MappedFile &&>(other); }
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  const uint8_t *data() const { return bytes; }
  size_t size() const { return length; }
  void willNeed() const; // asks the system to read ahead

private:
  const uint8_t *bytes = nullptr;
  size_t length = 0;
};

// Written beside its destination under a temporary name; commit() renames it. Without commit() nothing remains. A
// destination that is no regular file, such as /dev/stdout, is written to as it is.
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

  std::string path, temporary;
  int descriptor = -1;
  size_t written = 0;
};

std::string readTextFile(const std::string &path, size_t limit);

} // namespace ds
#endif
