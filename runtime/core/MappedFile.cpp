#include "runtime/core/MappedFile.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace ds {
namespace {
[[noreturn]] void refuseFile(const std::string &path, const char *what) {
  fail(ErrorCode::Io, path, ": ", what, ": ", std::strerror(errno));
}
} // namespace

MappedFile::MappedFile(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    refuseFile(path, "cannot open");
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    fail(ErrorCode::Io, path, ": not a regular file");
  }
  length = static_cast<size_t>(status.st_size);
  if (length != 0) {
    void *mapping = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED) {
      int reason = errno;
      close(descriptor);
      errno = reason;
      refuseFile(path, "cannot map");
    }
    bytes = static_cast<const uint8_t *>(mapping);
  }
  close(descriptor);
}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(length, other.length);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes)
    munmap(const_cast<uint8_t *>(bytes), length);
}

void MappedFile::willNeed() const {
  if (bytes)
    madvise(const_cast<uint8_t *>(bytes), length, MADV_WILLNEED);
}

AtomicFile::AtomicFile(const std::string &path) : path(path), temporary(path + ".tmp-XXXXXX") {
  struct stat status{};
  // A device or a pipe is written to, never replaced.
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    temporary.clear();
    descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
      refuse("cannot open for writing");
    return;
  }
  descriptor = mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0)
    refuseFile(path, "cannot create a file there");
  fchmod(descriptor, 0644);
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  if (!temporary.empty())
    unlink(temporary.c_str());
}

void AtomicFile::refuse(const char *what) const { refuseFile(path, what); }

void AtomicFile::write(const void *data, size_t bytes) {
  const char *from = static_cast<const char *>(data);
  written += bytes;
  while (bytes > 0) {
    ssize_t count = ::write(descriptor, from, bytes);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      refuse("cannot write");
    from += count;
    bytes -= static_cast<size_t>(count);
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor) != 0 && errno != EINVAL)
    refuse("cannot write");
  close(std::exchange(descriptor, -1));
  if (temporary.empty())
    return;
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    int reason = errno;
    unlink(temporary.c_str());
    errno = reason;
    refuse("cannot rename to it");
  }
}

std::string readTextFile(const std::string &path, size_t limit) {
  MappedFile file(path);
  if (file.size() > limit)
    fail(ErrorCode::BadFile, path, ": too large, found ", file.size(), " bytes, expected at most ", limit);
  return std::string(reinterpret_cast<const char *>(file.data()), file.size());
}

} // namespace ds
