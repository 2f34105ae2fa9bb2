// Who made a folder, and whether that process still lives, is told by a lock on the folder itself: the kernel drops it
// with the process, however that ends, and numbers of processes that are used again cannot deceive it.
#include "codegen/TemporaryFolder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <linux/fs.h>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using llvm::StringRef;

namespace deepstride {

static constexpr int slotCount = 16;
static char slotPaths[slotCount][PATH_MAX];
static std::atomic<int> slotStates[slotCount]; // 0 free, 1 being filled, 2 in use

SignalRemoval::SignalRemoval(const std::string &path) : slot(-1) {
  for (int i = 0; i < slotCount && path.size() < PATH_MAX; ++i) {
    int free = 0;
    if (!slotStates[i].compare_exchange_strong(free, 1))
      continue;
    slot = i;
    memcpy(slotPaths[i], path.c_str(), path.size() + 1);
    slotStates[i] = 2;
    return;
  }
}

SignalRemoval::~SignalRemoval() {
  if (slot >= 0)
    slotStates[slot] = 0;
}

/// Unlinks the files of a folder, which has no folders in it, and the folder. Only system calls: opendir allocates.
static void removeFlat(const char *path) {
  struct Entry { // as the kernel writes it
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[1];
  };
  for (int attempt = 0; attempt < 20; ++attempt) { // another thread may still be adding files
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
      return;
    alignas(8) char buffer[4096];
    for (long bytes; (bytes = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0;)
      for (long at = 0; at < bytes;) {
        auto *entry = reinterpret_cast<Entry *>(buffer + at);
        if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
          unlinkat(folder, entry->name, 0);
        at += entry->length;
      }
    close(folder);
    if (rmdir(path) == 0 || errno != ENOTEMPTY)
      return;
  }
}

void removeUnfinished() {
  int reason = errno;
  for (int i = slotCount - 1; i >= 0; --i)
    if (slotStates[i] == 2 && unlink(slotPaths[i]) != 0)
      removeFlat(slotPaths[i]);
  errno = reason;
}

std::error_code makeUnfinished(const std::string &prefix, const std::string &suffix,
                               const std::function<std::error_code(const std::string &)> &make, std::string &path,
                               std::unique_ptr<SignalRemoval> &removal) {
  std::random_device random;
  std::error_code code;
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name =
        prefix + llvm::utohexstr(0x100000000u + uint64_t(random()), /*LowerCase=*/true).substr(1) + suffix;
    auto fresh = std::make_unique<SignalRemoval>(name);
    code = make(name);
    if (code == std::errc::file_exists)
      continue;
    if (!code) {
      path = name;
      removal = std::move(fresh);
    }
    return code;
  }
  return code;
}

/// Parts of a package, finished or not, the linker's temporary files included.
static bool isPart(StringRef name) {
  return name == "manifest.json" || name == "weights.bin" || name == "SHA256SUMS" || name.starts_with("code-") ||
         name == "graph-without-parameters.onnx"; // of a package that trains
}

/// The first file that is no part of a package; empty when all are.
static std::string foreignFile(const std::string &folder) {
  std::error_code code;
  for (llvm::sys::fs::directory_iterator item(folder, code, /*follow_symlinks=*/false), end; !code && item != end;
       item.increment(code)) {
    StringRef name = llvm::sys::path::filename(item->path());
    if (!isPart(name) ||
        llvm::sys::fs::get_file_type(item->path(), /*Follow=*/false) != llvm::sys::fs::file_type::regular_file)
      return name.str();
  }
  return code ? "?" : "";
}

/// "x.dsp.tmp-<digits>-<8 hex digits>".
static bool isTemporaryName(StringRef name) {
  auto [stem, tail] = name.rsplit(".tmp-");
  auto [pid, number] = tail.split('-');
  return !stem.empty() && !pid.empty() && llvm::all_of(pid, llvm::isDigit) && number.size() == 8 &&
         llvm::all_of(number, llvm::isHexDigit);
}

static void removeAbandoned(const std::string &parent) {
  std::error_code code;
  for (llvm::sys::fs::directory_iterator item(parent, code, /*follow_symlinks=*/false), end; !code && item != end;
       item.increment(code)) {
    if (!isTemporaryName(llvm::sys::path::filename(item->path())))
      continue;
    int folder = open(item->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
      continue;
    struct stat status;
    bool isOurs = fstat(folder, &status) == 0 && status.st_uid == geteuid() && flock(folder, LOCK_EX | LOCK_NB) == 0 &&
                  foreignFile(item->path()).empty();
    if (isOurs)
      removeFlat(item->path().c_str());
    close(folder);
  }
}

static std::string parentOf(const std::string &path) {
  StringRef parent = llvm::sys::path::parent_path(path);
  return parent.empty() ? "." : parent.str();
}

/// Why a folder may not be replaced by a package; empty when it may.
static std::string refuseReplacing(const std::string &destination) {
  if (!llvm::sys::fs::is_directory(destination))
    return "it is no folder";
  if (!llvm::sys::fs::exists(destination + "/manifest.json") || !llvm::sys::fs::exists(destination + "/SHA256SUMS"))
    return "exists and is no package; it is left alone";
  if (std::string name = foreignFile(destination); !name.empty())
    return "exists and holds '" + name + "', which is no part of a package; it is left alone";
  return "";
}

std::pair<std::string, std::string> packageDestination(const std::string &name) {
  std::string destination = name;
  while (destination.size() > 1 && destination.back() == '/')
    destination.pop_back();
  struct stat status;
  if (stat(destination.c_str(), &status) == 0) {
    llvm::SmallString<256> real;
    if (std::error_code code = llvm::sys::fs::real_path(destination, real))
      return {destination, code.message()};
    destination = real.str().str();
    if (std::string reason = refuseReplacing(destination); !reason.empty())
      return {destination, reason};
  } else if (errno != ENOENT) {
    return {destination, std::strerror(errno)};
  }
  if (access(parentOf(destination).c_str(), W_OK | X_OK) != 0)
    return {destination, std::strerror(errno)};
  return {destination, ""};
}

std::error_code TemporaryFolder::create(const std::string &destination) {
  removeAbandoned(parentOf(destination));
  auto make = [this](const std::string &path) -> std::error_code {
    if (mkdir(path.c_str(), 0777) != 0) // what remains of it is the umask's business
      return std::error_code(errno, std::generic_category());
    lock = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // Another process that looks for abandoned folders may have been faster. File systems without locks do without:
    // there, nobody can lock a folder to remove it.
    bool isTaken = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status, named;
    bool isGone =
        lock < 0 || fstat(lock, &status) != 0 || stat(path.c_str(), &named) != 0 || status.st_ino != named.st_ino;
    if (!isTaken && !isGone)
      return {};
    if (lock >= 0)
      close(std::exchange(lock, -1));
    return std::make_error_code(std::errc::file_exists);
  };
  return makeUnfinished(destination + ".tmp-" + std::to_string(getpid()) + "-", "", make, folder, removal);
}

static int renameWith(const std::string &from, const std::string &to, unsigned flags) {
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags));
}

/// The system may report only now that a file found no room.
static int syncFiles(const std::string &folder) {
  std::error_code code;
  for (llvm::sys::fs::directory_iterator item(folder, code, /*follow_symlinks=*/false), end; !code && item != end;
       item.increment(code)) {
    int file = open(item->path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int reason = file < 0 || (fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP) ? errno : 0;
    if (file >= 0 && close(file) != 0 && reason == 0)
      reason = errno;
    if (reason != 0)
      return reason;
  }
  return code.value();
}

std::string TemporaryFolder::moveTo(const std::string &destination) {
  if (int reason = syncFiles(folder))
    return std::strerror(reason);
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (renameWith(folder, destination, RENAME_NOREPLACE) == 0) {
      folder.clear();
      remove();
      return "";
    }
    if (errno == EEXIST || errno == ENOTEMPTY) {
      if (std::string reason = refuseReplacing(destination); !reason.empty())
        return reason;
      if (renameWith(folder, destination, RENAME_EXCHANGE) == 0) { // the old package is in our folder now
        remove();
        return "";
      }
      if (errno == ENOENT) // somebody else has removed it
        continue;
    }
    if (errno != EINVAL && errno != ENOSYS)
      return std::strerror(errno);
    // A file system that has neither: for a moment there is no package at all.
    std::string retired = folder + ".old";
    bool isThere = llvm::sys::fs::exists(destination);
    if (isThere && rename(destination.c_str(), retired.c_str()) != 0)
      return std::strerror(errno);
    if (rename(folder.c_str(), destination.c_str()) != 0) {
      int reason = errno;
      if (isThere)
        rename(retired.c_str(), destination.c_str());
      return std::strerror(reason);
    }
    folder = isThere ? retired : "";
    remove();
    return "";
  }
  return std::strerror(EBUSY);
}

void TemporaryFolder::remove() {
  if (!folder.empty())
    removeFlat(folder.c_str());
  folder.clear();
  removal.reset();
  if (lock >= 0)
    close(std::exchange(lock, -1));
}

} // namespace deepstride
