#include "tools/ds-opt/CompileCache.h"

#include "codegen/cpu/Object.h"
#include "frontends/onnx/reader/FileAccess.h"
#include "tools/ds-opt/ContentHash.h"
#include "tools/ds-opt/Message.h"
#include "tools/ds-opt/PackageCache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

using llvm::StringRef;

namespace deepstride {

/// Relative folders would be others from each place where ds-opt is called; XDG asks to ignore them.
static std::string absoluteFromEnvironment(const char *name) {
  const char *value = std::getenv(name);
  return value && value[0] == '/' ? value : "";
}

std::string defaultCacheFolder() {
  if (const char *folder = std::getenv("DS_CACHE"))
    return folder;
  if (std::string folder = absoluteFromEnvironment("XDG_CACHE_HOME"); !folder.empty())
    return folder + "/deepstride";
  if (std::string folder = absoluteFromEnvironment("HOME"); !folder.empty())
    return folder + "/.cache/deepstride";
  return "";
}

/// The linker's number for a loaded object, which is a hash of its contents; else a digest of its file.
static std::string identityOf(const dl_phdr_info &object) {
  for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    auto *at = reinterpret_cast<const char *>(object.dlpi_addr + segment.p_vaddr);
    size_t left = segment.p_memsz, alignment = segment.p_align == 8 ? 8 : 4;
    auto aligned = [&](size_t size) { return (size + alignment - 1) / alignment * alignment; };
    for (ElfW(Nhdr) note; left >= sizeof(note);) {
      memcpy(&note, at, sizeof(note));
      size_t description = aligned(sizeof(note) + note.n_namesz), end = aligned(description + note.n_descsz);
      if (description + note.n_descsz > left)
        break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at + sizeof(note), "GNU", 4) == 0)
        return llvm::toHex(StringRef(at + description, note.n_descsz));
      at += std::min(end, left);
      left -= std::min(end, left);
    }
  }
  std::string name = object.dlpi_name[0] ? object.dlpi_name : "/proc/self/exe";
  int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  std::string digest = file >= 0 ? fileDigest(file).value_or("") : "";
  if (file >= 0)
    close(file);
  return digest;
}

/// Who compiles: ds-opt, its libraries and the linker that it calls. Empty where one of them cannot be told.
static std::string buildIdentity() {
  struct Found {
    std::string text;
    bool isKnown = true;
  } found;
  auto add = [](dl_phdr_info *object, size_t, void *data) {
    if (StringRef(object->dlpi_name).starts_with("linux-vdso")) // the kernel's: clocks
      return 0;
    std::string identity = identityOf(*object);
    static_cast<Found *>(data)->isKnown &= !identity.empty();
    static_cast<Found *>(data)->text += "object " + identity + "\n";
    return 0;
  };
  dl_iterate_phdr(add, &found);
  std::string linker = findLinker();
  struct stat status;
  if (!found.isKnown || linker.empty() || stat(linker.c_str(), &status) != 0)
    return "";
  return found.text + "linker " + linker + " " + std::to_string(status.st_size) + " " +
         std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) + "\n";
}

/// Constants are folded by this processor, and libm has functions for several.
static std::string hostIdentity() {
  std::vector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    if (feature.getValue())
      features.push_back(feature.getKey().str());
  llvm::sort(features);
  return "host " + llvm::sys::getHostCPUName().str() + " " + llvm::join(features, ",") + "\n";
}

static std::string describe(const CpuTarget &target) {
  std::string text = "target " + target.name + " " + target.level + " " + llvm::join(target.features, ",");
  for (int64_t number : {target.lanes, target.vectorBits, int64_t(target.sanitize)})
    text += " " + std::to_string(number);
  return text + " " + target.machine + "\n";
}

static bool isSame(const timespec &a, const timespec &b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

/// Times of files advance in steps: what happens within one step cannot be told from their times (git calls such files
/// racy). Steps are 10 ms at most where times have fractions, 2 s (FAT) where they have none.
static bool isOld(const timespec &changed, const timespec &start) {
  double age =
      static_cast<double>(start.tv_sec - changed.tv_sec) + 1e-9 * static_cast<double>(start.tv_nsec - changed.tv_nsec);
  return age > (changed.tv_nsec == 0 ? 2.0 : 0.02);
}

CompileCache::CompileCache(const DriverOptions &options, const std::vector<CpuTarget> &targets) : options(options) {
  if (options.cache.empty() || options.report || !options.dumpDir.empty() || options.crashIn || !options.folds ||
      !options.mlirOptions.empty() || !options.plugins.empty() || !options.passesAfter.empty())
    return;
  clock_gettime(CLOCK_REALTIME_COARSE, &start); // the clock of the files' times
  std::string contents;
  for (const std::string &path : {options.input, options.calibrate, options.training.config})
    if (!path.empty() && !read(path, contents))
      return; // whoever reads it next says why
  std::string build = buildIdentity();
  if (build.empty() || !isUsable())
    return;
  std::string text = "deepstride cache 1\n" + build + hostIdentity();
  for (const CpuTarget &target : targets)
    text += describe(target);
  for (const std::string &option : options.deciding) // lengths, so that no value can look like two
    text += "option " + std::to_string(option.size()) + " " + option + "\n";
  text += "model " + llvm::sys::path::filename(options.input).str() + "\n" + contents;
  key = contentDigest(text);
}

/// Adds the digest of a file that is named on the command line, and remembers the file.
bool CompileCache::read(const std::string &path, std::string &contents) {
  llvm::Expected<onnx::OpenFile> file = onnx::openNamedFile(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return false;
  }
  struct stat status;
  if (fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  std::optional<std::string> digest = fileDigest(file->get());
  if (!digest)
    return false;
  contents += *digest + "\n";
  named.push_back({path, status});
  return true;
}

CompileCache::~CompileCache() {
  if (package >= 0)
    close(package);
}

static void warn(const std::string &folder, const std::string &reason) {
  printMessage("ds-opt: warning: the cache '" + folder + "' is not used: " + reason);
}

/// A package is code that its user will run. Nobody chose the folder that is used by default, so it must be this
/// user's alone; `sudo` keeps HOME.
bool CompileCache::isUsable() {
  if (!options.isDefaultCache)
    return true;
  struct stat status;
  std::string folder = options.cache;
  bool isThere = stat(folder.c_str(), &status) == 0;
  while (stat(folder.c_str(), &status) != 0) {
    if (errno != ENOENT || folder == "/")
      return true; // writing says why not
    folder = llvm::sys::path::parent_path(folder).str();
  }
  bool isOurs = status.st_uid == geteuid() && (!isThere || (status.st_mode & 022) == 0);
  if (!isOurs)
    warn(options.cache, "expected '" + folder + "' to belong to this user and to be writable for nobody else");
  return isOurs;
}

/// A model names files below its folder, a program any file.
std::optional<std::string> CompileCache::digestOf(const std::string &externalFile, bool mustBeOld) const {
  llvm::Expected<onnx::OpenFile> file = options.isOnnx() ? onnx::openBelow(onnx::folderOf(options.input), externalFile)
                                                         : onnx::openNamedFile(externalFile);
  if (!file) {
    llvm::consumeError(file.takeError());
    return std::nullopt;
  }
  struct stat status;
  if (fstat(file->get(), &status) != 0 || (mustBeOld && !isOld(status.st_ctim, start)) ||
      static_cast<uint64_t>(status.st_size) > options.cacheBytes)
    return std::nullopt;
  return fileDigest(file->get());
}

bool CompileCache::deliver(const std::string &destination) {
  if (key.empty())
    return false;
  PackageCache cache(options.cache, options.cacheBytes);
  auto found = cache.deliver(key, options.input, destination,
                             [&](const std::string &file) { return digestOf(file, /*mustBeOld=*/false); });
  if (found)
    llvm::errs() << found->diagnostics;
  return found.has_value();
}

void CompileCache::watch(const std::string &destination) {
  if (key.empty())
    return;
  // docs/package-format.md has the name. Of two with our number, one is from elsewhere.
  std::string parent = onnx::folderOf(destination);
  std::string prefix = llvm::sys::path::filename(destination).str() + ".tmp-" + std::to_string(getpid()) + "-";
  std::vector<std::string> names;
  if (DIR *folder = opendir(parent.c_str())) {
    while (dirent *item = readdir(folder))
      if (StringRef(item->d_name).starts_with(prefix))
        names.push_back(parent + "/" + item->d_name);
    closedir(folder);
  }
  if (names.size() == 1)
    package = open(names[0].c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void CompileCache::keep(const std::vector<std::string> &externalFiles, const std::string &diagnostics) {
  if (key.empty() || package < 0)
    return;
  CachedPackage facts{{}, options.input, diagnostics};
  for (const std::string &file : externalFiles) {
    auto digest = digestOf(file, /*mustBeOld=*/true);
    if (!digest)
      return;
    facts.dependencies.push_back({file, *digest});
  }
  for (const auto &[path, before] : named) {
    struct stat now;
    if (stat(path.c_str(), &now) != 0 || now.st_dev != before.st_dev || now.st_ino != before.st_ino ||
        now.st_size != before.st_size || !isSame(now.st_ctim, before.st_ctim) || !isOld(now.st_ctim, start))
      return;
  }
  std::string reason = PackageCache(options.cache, options.cacheBytes).keep(key, facts, package);
  if (!reason.empty())
    warn(options.cache, reason);
}

} // namespace deepstride
