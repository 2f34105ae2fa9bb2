// Opens and maps model files. Follows ONNX's ExternalDataSecurity.md: lexical checks first, then
// openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS), or where the kernel lacks it a walk that opens
// every component with O_NOFOLLOW; file type and link count are read from the opened descriptor,
// so that nothing can be exchanged between check and use.

#include "frontends/onnx/reader/FileAccess.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace llvm;

namespace deepstride::onnx {

Error refuse(const Twine &what) {
  return make_error<StringError>(what, std::make_error_code(std::errc::invalid_argument));
}

std::string quoted(StringRef text) {
  constexpr size_t longest = 160;
  std::string result;
  raw_string_ostream os(result);
  os << '\'';
  printEscapedString(text.take_front(longest), os);
  os << (text.size() > longest ? "...'" : "'");
  return result;
}

static Error systemError(StringRef what, int number) { return refuse(what + ": " + std::strerror(number)); }

OpenFile::~OpenFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

Expected<uint64_t> OpenFile::size() const {
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return systemError("cannot read the file's size", errno);
  return static_cast<uint64_t>(status.st_size);
}

Expected<std::string> OpenFile::read(uint64_t offset, uint64_t length) const {
  std::string bytes(length, '\0');
  for (uint64_t done = 0; done < length;) {
    ssize_t count = ::pread(descriptor, bytes.data() + done, length - done, offset + done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError("cannot read the file", errno);
    if (count == 0)
      return refuse("the file became shorter while it was read");
    done += count;
  }
  return bytes;
}

bool OpenFile::isHole(uint64_t offset, uint64_t length) const {
  off_t data = ::lseek(descriptor, static_cast<off_t>(offset), SEEK_DATA);
  return data < 0 ? errno == ENXIO : static_cast<uint64_t>(data) - offset >= length; // ENXIO: none up to the end
}

MappedFile::~MappedFile() {
  if (!data.empty())
    ::munmap(const_cast<uint8_t *>(data.data()), data.size());
}

Expected<MappedFile> MappedFile::map(const OpenFile &file) {
  Expected<uint64_t> size = file.size();
  if (!size)
    return size.takeError();
  MappedFile mapped;
  if (*size == 0)
    return mapped;
  void *address = ::mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED)
    return systemError("cannot map the file", errno);
  mapped.data = ArrayRef(static_cast<const uint8_t *>(address), *size);
  return mapped;
}

/// O_NONBLOCK so that opening a pipe returns and can be refused.
static constexpr int readFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

static Error expectRegular(const OpenFile &file, bool forbidHardLinks) {
  struct stat status;
  if (::fstat(file.get(), &status) != 0)
    return systemError("cannot read the file's kind", errno);
  if (S_ISDIR(status.st_mode))
    return refuse("expected a regular file, found a folder");
  if (!S_ISREG(status.st_mode))
    return refuse("expected a regular file, found a pipe, socket or device");
  if (forbidHardLinks && status.st_nlink > 1)
    return refuse("expected a file with one name, found " + Twine(status.st_nlink) +
                  " hard links; copy the file instead of linking it");
  return Error::success();
}

Expected<OpenFile> openNamedFile(const std::string &path) {
  OpenFile file(::open(path.c_str(), readFlags));
  if (file.get() < 0)
    return systemError("cannot open the file", errno);
  if (Error error = expectRegular(file, /*forbidHardLinks=*/false))
    return std::move(error);
  return file;
}

/// The components of a location that stays below its folder as far as its text shows.
static Expected<SmallVector<std::string>> splitLocation(StringRef location) {
  if (location.empty())
    return refuse("expected a file name, found nothing");
  if (location.contains('\0'))
    return refuse("expected a file name, found a zero byte in " + quoted(location));
  if (location.starts_with("/"))
    return refuse("expected a path relative to the model's folder, found the absolute path " + quoted(location));
  SmallVector<StringRef> parts;
  location.split(parts, '/', -1, /*KeepEmpty=*/false);
  SmallVector<std::string> components;
  for (StringRef part : parts) {
    if (part == "..")
      return refuse("expected a path below the model's folder, found '..' in " + quoted(location));
    if (part != ".")
      components.push_back(part.str());
  }
  if (components.empty() || location.ends_with("/"))
    return refuse("expected a file name, found the folder " + quoted(location));
  return components;
}

static Error explainOpen(int number, StringRef location) {
  if (number == ELOOP)
    return refuse("expected a file reached without symbolic links, found one in " + quoted(location));
  if (number == EXDEV)
    return refuse("expected a path below the model's folder, found " + quoted(location));
  return systemError("cannot open " + quoted(location), number);
}

static int openByKernel(int folder, const std::string &path) {
  struct open_how how = {};
  how.flags = readFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: something was renamed meanwhile and the kernel could not prove containment.
  for (int attempt = 0; attempt < 16; ++attempt) {
    int opened = ::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how));
    if (opened >= 0 || (errno != EAGAIN && errno != EINTR))
      return opened;
  }
  return -1;
}

static int openByWalk(int folder, ArrayRef<std::string> components) {
  OpenFile parent(::dup(folder));
  for (const std::string &name : components.drop_back()) {
    OpenFile next(::openat(parent.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY));
    if (next.get() < 0) {
      // The kernel reports a link where a folder is asked for as "not a folder".
      struct stat status;
      int number = errno;
      bool isLink = number == ENOTDIR && ::fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(status.st_mode);
      errno = isLink ? ELOOP : number;
      return -1;
    }
    parent = std::move(next);
  }
  return ::openat(parent.get(), components.back().c_str(), readFlags | O_NOFOLLOW);
}

std::string folderOf(StringRef path) {
  StringRef folder = sys::path::parent_path(path);
  return folder.empty() ? "." : folder.str();
}

Expected<OpenFile> openBelow(const std::string &folder, StringRef location, Beneath how) {
  Expected<SmallVector<std::string>> components = splitLocation(location);
  if (!components)
    return components.takeError();
  OpenFile base(::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (base.get() < 0)
    return systemError("cannot open the model's folder " + quoted(folder), errno);

  int opened = -1;
  if (how == Beneath::Kernel)
    opened = openByKernel(base.get(), join(*components, "/"));
  // Old kernels lack the call, sandboxes forbid it.
  if (how == Beneath::Walk || (opened < 0 && (errno == ENOSYS || errno == EPERM)))
    opened = openByWalk(base.get(), *components);
  if (opened < 0)
    return explainOpen(errno, location);

  OpenFile file(opened);
  if (Error error = expectRegular(file, /*forbidHardLinks=*/true))
    return std::move(error);
  return file;
}

} // namespace deepstride::onnx
