#include "runtime/core/MappedFile.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

// Like stat; false where nothing is there, an Error where the system does not say.
bool look(const std::string &path, struct stat &status) {
  if (stat(path.c_str(), &status) == 0)
    return true;
  if (errno != ENOENT && errno != ENOTDIR)
    refuseFile(path, "cannot look at it");
  return false;
}
} // namespace

bool isThere(const std::string &path) {
  struct stat status;
  return look(path, status);
}

bool isFolder(const std::string &path) {
  struct stat status;
  return look(path, status) && S_ISDIR(status.st_mode);
}

InputFile::InputFile(const std::string &path) : path(path), descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor < 0)
    refuseFile(path, "cannot open");
}

InputFile::~InputFile() { close(descriptor); }

void InputFile::read(uint64_t offset, void *data, size_t bytes) const {
  for (uint8_t *to = static_cast<uint8_t *>(data); bytes > 0;) {
    ssize_t count = pread(descriptor, to, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      refuseFile(path, "cannot read");
    if (count == 0)
      fail(ErrorCode::BadFile, path, ": ends at byte ", offset, ", expected ", bytes, " more (truncated?)");
    to += count;
    offset += static_cast<uint64_t>(count);
    bytes -= static_cast<size_t>(count);
  }
}

MappedFile::MappedFile(const InputFile &file) {
  struct stat status;
  if (fstat(file.descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    fail(ErrorCode::Io, file.path, ": not a regular file");
  length = static_cast<size_t>(status.st_size);
  if (length == 0)
    return;
  void *mapping = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.descriptor, 0);
  if (mapping == MAP_FAILED)
    refuseFile(file.path, "cannot map");
  bytes = static_cast<const uint8_t *>(mapping);
  isMapping = true;
}

MappedFile MappedFile::over(const void *data, size_t size) {
  MappedFile file;
  file.bytes = static_cast<const uint8_t *>(data);
  file.length = size;
  return file;
}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(length, other.length);
  std::swap(isMapping, other.isMapping);
  return *this;
}

MappedFile::~MappedFile() {
  if (isMapping)
    munmap(const_cast<uint8_t *>(bytes), length);
}

void MappedFile::willNeed(size_t offset, size_t count) const {
  size_t before = offset % static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (isMapping)
    madvise(const_cast<uint8_t *>(bytes) + offset - before, count + before, MADV_WILLNEED);
}

void MappedFile::release(size_t offset, size_t count) const {
  if (!isMapping) // the advice would empty memory that is no file's
    return;
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t begin = (offset + page - 1) / page * page;
  size_t end =
      offset + count == length ? length : (offset + count) / page * page; // the last page has nothing behind it
  if (begin < end) // advice: that it could not be taken changes nothing
    (void)madvise(const_cast<uint8_t *>(bytes) + begin, end - begin, MADV_DONTNEED);
}

namespace {

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// The name under which a nameless file of this process can be linked.
std::string descriptorPath(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

} // namespace

template <typename Make> bool AtomicFile::withFreeName(Make make) {
  for (unsigned i = 0; i < 1000; ++i) {
    temporary = concat(path, ".tmp-", getpid(), "-", i);
    if (make())
      return true;
    if (errno != EEXIST)
      break;
  }
  temporary.clear();
  return false;
}

AtomicFile::AtomicFile(const std::string &given) : path(given) {
  struct stat status{};
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode))
      fail(ErrorCode::Io, path, ": is a folder, expected the name of a file");
    isStream = !S_ISREG(status.st_mode); // a device or a pipe is written to, never replaced
    // What a link names is replaced, not the link.
    if (char *target = isStream ? nullptr : realpath(path.c_str(), nullptr)) {
      path = target;
      std::free(target);
    }
  }
  if (isStream) {
    descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
      refuse("cannot open for writing");
    return;
  }
  descriptor = open(folderOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor >= 0 && access(descriptorPath(descriptor).c_str(), F_OK) == 0)
    return;
  if (descriptor >= 0)
    close(std::exchange(descriptor, -1));
  auto create = [&] {
    descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return descriptor >= 0;
  };
  if (!withFreeName(create))
    refuse("cannot create a file there");
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0)
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
  // Pipes and some devices have nothing to synchronise.
  if (fsync(descriptor) != 0 && !(isStream && (errno == EINVAL || errno == ENOTSUP || errno == EROFS)))
    refuse("cannot write");
  if (!isStream && temporary.empty()) {
    auto link = [&](const std::string &name) {
      return linkat(AT_FDCWD, descriptorPath(descriptor).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    bool isNamed = link(path);
    if (!isNamed && (errno != EEXIST || !withFreeName([&] { return link(temporary); })))
      refuse("cannot create a file there");
  }
  if (close(std::exchange(descriptor, -1)) != 0)
    refuse("cannot write");
  if (temporary.empty())
    return;
  if (rename(temporary.c_str(), path.c_str()) != 0)
    refuse("cannot rename to it");
  temporary.clear();
}

std::string readTextFile(const std::string &path, size_t limit) {
  MappedFile file(path);
  if (file.size() > limit)
    fail(ErrorCode::BadFile, path, ": too large, found ", file.size(), " bytes, expected at most ", limit);
  return std::string(reinterpret_cast<const char *>(file.data()), file.size());
}

} // namespace ds
