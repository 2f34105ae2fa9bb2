// No hard links: whoever may write to a package could then write to the cache. Nothing waits for the disk, either: what
// a power cut spoils is found by its digest and compiled again.
#include "tools/ds-opt/PackageCache.h"

#include "codegen/TemporaryFolder.h"
#include "tools/ds-opt/ContentHash.h"
#include "tools/ds-opt/Json.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>

using llvm::StringRef;

namespace deepstride {

namespace {

/// Owns a descriptor.
class File {
public:
  explicit File(int descriptor) : descriptor(descriptor) {}
  File(File &&other) : descriptor(std::exchange(other.descriptor, -1)) {}
  ~File() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  operator int() const { return descriptor; }
  /// Some file systems report only now that there was no room. Returns errno or 0.
  int close() { return ::close(std::exchange(descriptor, -1)) == 0 ? 0 : errno; }

private:
  int descriptor;
};

struct EntryFile {
  std::string name;
  uint64_t bytes = 0;
  std::string digest;
  bool isExecutable = false;
};

struct Entry {
  CachedPackage facts;
  std::vector<EntryFile> files;
};

} // namespace

static constexpr StringRef factsName = "entry.json", unfinishedPrefix = "new-";
static constexpr size_t keyDigits = 64, digestDigits = 64;

static File openFolder(const std::string &path) {
  return File(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

static File openPart(int folder, const std::string &name) {
  return File(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

static std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator item(folder, code, /*follow_symlinks=*/false), end; !code && item != end;
       item.increment(code))
    names.push_back(llvm::sys::path::filename(item->path()).str());
  return names;
}

/// The names in an open folder, whatever it is called by now.
static std::vector<std::string> namesIn(int folder) { return namesIn("/proc/self/fd/" + std::to_string(folder) + "/"); }

/// All names of entries that may have this key, or of all entries.
static std::vector<std::string> entriesOf(const std::string &folder, StringRef key = "") {
  std::vector<std::string> names = namesIn(folder);
  llvm::erase_if(names, [&](StringRef name) {
    auto [found, number] = name.split('-');
    return found.size() != keyDigits || !llvm::all_of(found, llvm::isHexDigit) || number.empty() ||
           !llvm::all_of(number, llvm::isHexDigit) || !found.starts_with(key);
  });
  llvm::sort(names);
  return names;
}

static bool isPlainName(StringRef name) {
  return !name.empty() && name != "." && name != ".." && !name.contains('/') && name != factsName;
}

/// A last line with the digest of all before it tells a whole file from one that was cut or changed.
static std::string factsText(const Entry &entry) {
  llvm::json::Array dependencies, files;
  for (const Dependency &dependency : entry.facts.dependencies)
    dependencies.push_back(llvm::json::Object{{"file", dependency.file}, {"digest", dependency.digest}});
  for (const EntryFile &file : entry.files)
    files.push_back(llvm::json::Object{
        {"name", file.name}, {"bytes", file.bytes}, {"digest", file.digest}, {"executable", file.isExecutable}});
  llvm::json::Object facts{{"input", entry.facts.input},
                           {"dependencies", std::move(dependencies)},
                           {"files", std::move(files)},
                           {"diagnostics", entry.facts.diagnostics}};
  std::string text = llvm::formatv("{0}\n", llvm::json::Value(std::move(facts))).str();
  return text + contentDigest(text) + "\n";
}

static std::optional<Entry> parseFacts(StringRef text) {
  if (text.size() < digestDigits + 1)
    return std::nullopt;
  StringRef body = text.drop_back(digestDigits + 1);
  if (text.drop_front(body.size()) != contentDigest(body) + "\n")
    return std::nullopt;
  llvm::Expected<llvm::json::Value> value = parseJson(body);
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  auto textOf = [](const llvm::json::Object *object, StringRef name) {
    return object ? object->getString(name).value_or("").str() : std::string();
  };
  const llvm::json::Object *facts = value->getAsObject();
  const llvm::json::Array *dependencies = facts ? facts->getArray("dependencies") : nullptr;
  const llvm::json::Array *files = facts ? facts->getArray("files") : nullptr;
  if (!dependencies || !files)
    return std::nullopt;
  Entry entry{{{}, textOf(facts, "input"), textOf(facts, "diagnostics")}, {}};
  for (const llvm::json::Value &item : *dependencies)
    entry.facts.dependencies.push_back({textOf(item.getAsObject(), "file"), textOf(item.getAsObject(), "digest")});
  for (const llvm::json::Value &item : *files) {
    const llvm::json::Object *file = item.getAsObject();
    if (!file || !isPlainName(textOf(file, "name")))
      return std::nullopt;
    entry.files.push_back({textOf(file, "name"), static_cast<uint64_t>(file->getInteger("bytes").value_or(-1)),
                           textOf(file, "digest"), file->getBoolean("executable").value_or(false)});
  }
  return entry;
}

static std::optional<Entry> readEntry(int folder) {
  File file = openPart(folder, factsName.str());
  auto text = llvm::MemoryBuffer::getOpenFile(llvm::sys::fs::file_t(int(file)), factsName, /*FileSize=*/uint64_t(-1),
                                              /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
  return file >= 0 && text ? parseFacts((*text)->getBuffer()) : std::nullopt;
}

/// Removes an entry, or what was to become one, unless someone reads it. Without its facts it is none, so these go
/// first.
static bool removeEntry(const std::string &path) {
  File entry = openFolder(path);
  if (entry < 0 || (flock(entry, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK))
    return false;
  unlinkat(entry, factsName.str().c_str(), 0);
  for (const std::string &name : namesIn(entry))
    unlinkat(entry, name.c_str(), 0);
  return rmdir(path.c_str()) == 0;
}

/// Returns errno or 0. By reference where the file system shares blocks until one side is written to.
static int copyBytes(int from, int to, uint64_t bytes) {
  if (ioctl(to, FICLONE, from) == 0)
    return 0;
  uint64_t done = 0;
  while (done < bytes) {
    ssize_t count = copy_file_range(from, nullptr, to, nullptr, bytes - done, 0);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO))
      return errno;
    if (count <= 0)
      break; // the file systems do not do this between each other
    done += static_cast<uint64_t>(count);
  }
  std::vector<char> piece(size_t(1) << 20);
  while (done < bytes) {
    ssize_t count = pread(from, piece.data(), std::min<uint64_t>(piece.size(), bytes - done), static_cast<off_t>(done));
    if (count <= 0)
      return count < 0 ? errno : EIO;
    for (ssize_t at = 0; at < count;) {
      ssize_t written = pwrite(to, piece.data() + at, static_cast<size_t>(count - at), static_cast<off_t>(done) + at);
      if (written < 0 && errno != EINTR)
        return errno;
      at += std::max<ssize_t>(written, 0);
    }
    done += static_cast<uint64_t>(count);
  }
  return 0;
}

static bool isEarlier(const timespec &a, const timespec &b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/// The folder takes the place of what is there, as TemporaryFolder::moveTo does it, but without waiting for the disk.
static bool publish(TemporaryFolder &folder, const std::string &destination) {
  auto rename = [&](unsigned flags) {
    return syscall(SYS_renameat2, AT_FDCWD, folder.path().c_str(), AT_FDCWD, destination.c_str(), flags) == 0;
  };
  if (rename(RENAME_NOREPLACE))
    return true;
  if ((errno == EEXIST || errno == ENOTEMPTY) && packageDestination(destination).second.empty() &&
      rename(RENAME_EXCHANGE))
    return true; // what was there goes with the temporary folder
  return folder.moveTo(destination).empty();
}

/// Whether the entry's files arrived in `target`; `isDamaged` tells where they could not.
static bool copyEntry(int entry, const std::vector<EntryFile> &files, const std::string &target, bool &isDamaged) {
  std::vector<File> sources;
  for (const EntryFile &file : files) {
    sources.push_back(openPart(entry, file.name));
    struct stat status;
    if (sources.back() < 0 || fstat(sources.back(), &status) != 0 || !S_ISREG(status.st_mode) ||
        static_cast<uint64_t>(status.st_size) != file.bytes)
      return isDamaged = true, false;
  }
  bool isWhole = true;
  std::thread verification([&] {
    for (size_t i = 0; isWhole && i < files.size(); ++i)
      isWhole = fileDigest(sources[i], 1) == files[i].digest;
  });
  bool isCopied = true;
  for (size_t i = 0; isCopied && i < files.size(); ++i) {
    File copy(open((target + "/" + files[i].name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                   files[i].isExecutable ? 0777 : 0666));
    isCopied = copy >= 0 && copyBytes(sources[i], copy, files[i].bytes) == 0 && copy.close() == 0;
  }
  verification.join();
  isDamaged = !isWhole;
  return isCopied && isWhole;
}

/// Whether a package at this place holds the entry's bytes. Then it gets the times of a new one and stays: whoever
/// compiles twice to one place waits for no copy.
static bool isThereAlready(const std::string &destination, const std::vector<EntryFile> &files) {
  File folder = openFolder(destination);
  if (folder < 0 || namesIn(folder).size() != files.size())
    return false;
  std::vector<File> parts;
  for (const EntryFile &file : files) {
    parts.push_back(openPart(folder, file.name));
    struct stat status;
    if (parts.back() < 0 || fstat(parts.back(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1 ||
        static_cast<uint64_t>(status.st_size) != file.bytes || ((status.st_mode & S_IXUSR) != 0) != file.isExecutable)
      return false;
  }
  for (size_t i = 0; i < files.size(); ++i)
    if (fileDigest(parts[i]) != files[i].digest)
      return false;
  for (const File &part : parts)
    if (futimens(part, nullptr) != 0)
      return false;
  return futimens(folder, nullptr) == 0;
}

std::optional<CachedPackage>
PackageCache::deliver(StringRef key, StringRef input, const std::string &destination,
                      llvm::function_ref<std::optional<std::string>(const std::string &)> digestOf) {
  for (const std::string &name : entriesOf(folder, key)) {
    std::string path = folder + "/" + name;
    File entry = openFolder(path);
    if (entry < 0 || (flock(entry, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK))
      continue;
    auto release = [&] { entry.close(); };
    std::optional<Entry> found = readEntry(entry);
    if (!found) {
      release();
      removeEntry(path);
      continue;
    }
    // What it printed names the model in the words of then.
    bool isSame = found->facts.diagnostics.empty() || found->facts.input == input;
    for (const Dependency &dependency : found->facts.dependencies)
      isSame = isSame && digestOf(dependency.file) == dependency.digest;
    if (!isSame)
      continue;
    TemporaryFolder copy;
    bool isDamaged = false;
    if (isThereAlready(destination, found->files) ||
        (!copy.create(destination) && copyEntry(entry, found->files, copy.path(), isDamaged) &&
         publish(copy, destination))) {
      futimens(entry, nullptr); // when it was used; a cache that only others write to does without
      return found->facts;
    }
    release();
    if (isDamaged)
      removeEntry(path);
  }
  return std::nullopt;
}

/// Marks the folder for backup programs (bford.info/cachedir) and gives its lock; on failure errno in `reason`.
static File lockFolder(const std::string &folder, int &reason) {
  if (std::error_code code =
          llvm::sys::fs::create_directories(folder, /*IgnoreExisting=*/true, llvm::sys::fs::perms::owner_all)) {
    reason = code.value();
    return File(-1);
  }
  File tag(open((folder + "/CACHEDIR.TAG").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  constexpr StringRef signature = "Signature: 8a477f597d28d172789f06886806bc55\n# Packages compiled by ds-opt.\n";
  if (tag >= 0 && write(tag, signature.data(), signature.size()) < 0)
    reason = errno;
  File lock(open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  reason = lock < 0 ? errno : 0;
  // Others need it for the time of a copy; one that was stopped must not stop us.
  using Clock = std::chrono::steady_clock;
  for (auto start = Clock::now(); lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0;) {
    reason = errno;
    if (reason != EWOULDBLOCK || Clock::now() - start > std::chrono::seconds(5))
      return File(-1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    reason = 0;
  }
  return lock;
}

std::string PackageCache::keep(StringRef key, const CachedPackage &facts, int package) {
  if (!llvm::json::isUTF8(facts.input) || !llvm::json::isUTF8(facts.diagnostics) ||
      !llvm::all_of(facts.dependencies, [](const Dependency &file) { return llvm::json::isUTF8(file.file); }))
    return ""; // no JSON could say it
  int reason = 0;
  File lock = lockFolder(folder, reason);
  if (lock < 0)
    return reason == EWOULDBLOCK ? "" : std::strerror(reason);
  return addEntry(key, facts, package);
}

static uint64_t bytesIn(int folder) {
  uint64_t bytes = 0;
  struct stat status;
  for (const std::string &name : namesIn(folder))
    if (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      bytes += static_cast<uint64_t>(status.st_size);
  return bytes;
}

/// Whether `bytes` more fit once what was used longest ago is gone.
bool PackageCache::makeRoom(uint64_t bytes) {
  for (const std::string &name : namesIn(folder))
    if (StringRef(name).starts_with(unfinishedPrefix)) // we hold the lock: its process is gone
      removeEntry(folder + "/" + name);
  struct Known {
    timespec used;
    std::string path;
    uint64_t bytes;
  };
  std::vector<Known> entries;
  uint64_t total = bytes;
  for (const std::string &name : entriesOf(folder)) {
    File entry = openFolder(folder + "/" + name);
    struct stat status;
    if (entry < 0 || fstat(entry, &status) != 0)
      continue;
    entries.push_back({status.st_mtim, folder + "/" + name, bytesIn(entry)});
    total += entries.back().bytes;
  }
  llvm::sort(entries, [](const Known &a, const Known &b) { return isEarlier(a.used, b.used); });
  for (const Known &entry : entries)
    if (total > mostBytes && removeEntry(entry.path))
      total -= entry.bytes;
  return total <= mostBytes;
}

/// The names that SHA256SUMS has in its lines, `<64 digits>  <name>` or `<64 digits>  <name>:<range>`; its own is the
/// last.
static std::vector<std::string> namesInChecksums(int package) {
  File file = openPart(package, "SHA256SUMS");
  auto text = llvm::MemoryBuffer::getOpenFile(llvm::sys::fs::file_t(int(file)), "SHA256SUMS",
                                              /*FileSize=*/uint64_t(-1), /*RequiresNullTerminator=*/false,
                                              /*IsVolatile=*/true);
  std::vector<std::string> names;
  if (file >= 0 && text) {
    llvm::SmallVector<StringRef> lines;
    (*text)->getBuffer().split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef line : lines)
      names.push_back(line.drop_front(std::min<size_t>(line.size(), 66)).split(':').first.str());
  }
  names.erase(llvm::unique(names), names.end());
  return names;
}

/// The files of a finished package; none where one was written to after the package got its name, or where some are
/// gone: another process may have put a package of its own in this place, and be removing this one.
static std::optional<std::vector<EntryFile>> filesOf(int package) {
  struct stat folder, status;
  if (fstat(package, &folder) != 0)
    return std::nullopt;
  std::vector<EntryFile> files;
  for (const std::string &name : namesIn(package)) {
    if (!isPlainName(name) || fstatat(package, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode) || isEarlier(folder.st_ctim, status.st_mtim))
      return std::nullopt;
    files.push_back({name, static_cast<uint64_t>(status.st_size), "", (status.st_mode & S_IXUSR) != 0});
  }
  std::vector<std::string> expected = namesInChecksums(package);
  auto has = [&](StringRef name) {
    return llvm::any_of(files, [&](const EntryFile &file) { return file.name == name; });
  };
  if (expected.empty() || expected.back() != "SHA256SUMS" || !llvm::all_of(expected, has) || !has("weights.bin"))
    return std::nullopt;
  llvm::sort(files, [](const EntryFile &a, const EntryFile &b) { return a.name < b.name; });
  return files;
}

std::string PackageCache::addEntry(StringRef key, const CachedPackage &facts, int package) {
  auto files = filesOf(package);
  if (!files)
    return "";
  Entry entry{facts, std::move(*files)};
  uint64_t total = 0;
  for (const EntryFile &file : entry.files)
    total += file.bytes;
  total += factsText(entry).size() + entry.files.size() * digestDigits;
  if (total > mostBytes || !makeRoom(total))
    return "";

  std::string path;
  std::unique_ptr<SignalRemoval> removal;
  auto make = [](const std::string &name) {
    return mkdir(name.c_str(), 0777) == 0 ? std::error_code() : std::error_code(errno, std::generic_category());
  };
  if (std::error_code code = makeUnfinished(folder + "/" + unfinishedPrefix.str(), "", make, path, removal))
    return code.message();
  auto giveUp = [&](int reason) {
    removeEntry(path);
    return reason ? std::string(std::strerror(reason)) : std::string();
  };
  for (EntryFile &file : entry.files) {
    File source = openPart(package, file.name);
    if (source < 0)
      return giveUp(0); // another process has replaced the package
    File copy(open((path + "/" + file.name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
    if (copy < 0)
      return giveUp(errno);
    std::optional<std::string> digest;
    std::thread hashing([&] { digest = fileDigest(source, 1); });
    int reason = copyBytes(source, copy, file.bytes);
    hashing.join();
    if (reason == 0)
      reason = copy.close();
    if (reason || !digest)
      return giveUp(reason);
    file.digest = *digest;
  }
  if (!filesOf(package)) // as long as nobody wrote, what was copied is what was compiled
    return giveUp(0);
  std::string text = factsText(entry);
  File copy(open((path + "/" + factsName.str()).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (copy < 0 || write(copy, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || copy.close() != 0)
    return giveUp(errno);

  std::string list;
  for (const Dependency &dependency : facts.dependencies)
    list += dependency.file + "\n" + dependency.digest + "\n";
  std::string final = folder + "/" + key.str() + "-" + contentDigest(list).substr(0, 16);
  removeEntry(final); // damaged, or in words of another command
  return rename(path.c_str(), final.c_str()) == 0 || errno == EEXIST || errno == ENOTEMPTY ? giveUp(0) : giveUp(errno);
}

} // namespace deepstride
