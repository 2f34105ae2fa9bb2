#include "runtime/core/PackageFiles.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <unistd.h>

namespace ds {

PackageFiles::PackageFiles(const std::string &folder) : folder(folder) {
  if (!isFolder(folder))
    fail(ErrorCode::BadPackage, "not a package directory");
}

PackageFiles::PackageFiles(std::vector<MemoryFile> given) : folder("memory"), isMemory(true) {
  for (MemoryFile &file : given) {
    std::string name = file.name;
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
      fail(ErrorCode::InvalidArgument, "'", name, "' is not the name of a file of a package");
    if (!files.emplace(name, std::move(file)).second)
      fail(ErrorCode::InvalidArgument, "file '", name, "' is given twice");
  }
}

bool PackageFiles::has(const std::string &name) const {
  return isMemory ? files.count(name) != 0 : isThere(pathOf(name));
}

bool PackageFiles::isEmptyFile(const std::string &name) const {
  std::error_code ignored;
  return isMemory ? files.at(name).size == 0
                  : std::filesystem::is_regular_file(pathOf(name), ignored) &&
                        std::filesystem::file_size(pathOf(name), ignored) == 0;
}

MappedFile PackageFiles::open(const std::string &name) const {
  if (!isMemory)
    return MappedFile(pathOf(name));
  const MemoryFile &file = files.at(name);
  return MappedFile::over(file.data, file.size);
}

std::string PackageFiles::text(const std::string &name, size_t limit) const {
  MappedFile file = open(name);
  if (file.size() > limit)
    fail(ErrorCode::BadFile, pathOf(name), ": too large, found ", file.size(), " bytes, expected at most ", limit);
  return std::string(reinterpret_cast<const char *>(file.data()), file.size());
}

std::vector<std::string> PackageFiles::names() const {
  std::vector<std::string> found;
  for (const auto &item : files)
    found.push_back(item.first);
  std::error_code error;
  if (!isMemory)
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      found.push_back(it->path().filename().string());
  if (error)
    fail(ErrorCode::Io, folder, ": cannot list: ", error.message());
  std::sort(found.begin(), found.end());
  return found;
}

LoadedCode &LoadedCode::operator=(LoadedCode &&other) noexcept {
  std::swap(handle, other.handle);
  std::swap(descriptor, other.descriptor);
  return *this;
}

LoadedCode::~LoadedCode() {
  if (handle)
    dlclose(handle);
  if (descriptor >= 0)
    close(descriptor);
}

void *LoadedCode::symbol(const char *name) const { return dlsym(handle, name); }

static void writeAll(int descriptor, const MappedFile &file) {
  for (size_t done = 0; done < file.size();) {
    ssize_t count = write(descriptor, file.data() + done, file.size() - done);
    if (count < 0 && errno != EINTR)
      fail(ErrorCode::Io, "cannot write into memory of its own: ", std::strerror(errno));
    done += count < 0 ? 0 : static_cast<size_t>(count);
  }
}

LoadedCode PackageFiles::openCode(const std::string &name) const {
  LoadedCode code;
  if (isMemory) { // the loader opens files only: a copy without a name
    code.descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (code.descriptor < 0)
      fail(ErrorCode::Io, name, ": no memory of its own: ", std::strerror(errno));
    annotated(name, [&] { writeAll(code.descriptor, open(name)); });
  } else if (code.descriptor = ::open(pathOf(name).c_str(), O_RDONLY | O_CLOEXEC); code.descriptor < 0)
    fail(ErrorCode::Io, name, ": cannot be opened: ", std::strerror(errno));
  code.handle = dlopen(("/proc/self/fd/" + std::to_string(code.descriptor)).c_str(), RTLD_NOW | RTLD_LOCAL);
  return code;
}

} // namespace ds
