#include "runtime/training/CheckpointFolder.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Text.h"
#include "runtime/training/CheckpointInfo.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds {
namespace {

namespace fs = std::filesystem;

const std::string temporaryPrefix = ".tmp-", replacedPrefix = ".old-", latestName = "latest";
constexpr size_t maxLatest = 4096;

[[noreturn]] void refuse(const std::string &path, const char *what) {
  fail(ErrorCode::Io, path, ": ", what, ": ", std::strerror(errno));
}

bool beginsWith(const std::string &text, const std::string &start) { return text.compare(0, start.size(), start) == 0; }

bool isCheckpoint(const std::string &path) { return isThere(path + "/" + checkpointInfoName); }

std::vector<std::string> entries(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    fail(ErrorCode::Io, folder, ": cannot list: ", error.message());
  return names;
}

void removeTree(const std::string &path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error)
    fail(ErrorCode::Io, path, ": cannot remove: ", error.message());
}

// Names are on the disk when their folder is.
void syncFolder(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    refuse(path, "cannot open the folder");
  int code = fsync(descriptor), reason = errno;
  close(descriptor);
  errno = reason;
  // Some network file systems have nothing to synchronise there.
  if (code != 0 && errno != EINVAL && errno != ENOTSUP)
    refuse(path, "cannot write the folder");
}

void renameTo(const std::string &from, const std::string &to) {
  if (rename(from.c_str(), to.c_str()) != 0)
    refuse(to, "cannot rename to it");
}

// Digits count as numbers.
bool isBefore(const std::string &a, const std::string &b) {
  size_t i = 0, j = 0;
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  auto digits = [&](const std::string &text, size_t at) {
    size_t end = at;
    while (end < text.size() && isDigit(text[end]))
      ++end;
    while (at + 1 < end && text[at] == '0')
      ++at;
    return std::pair(text.substr(at, end - at), end);
  };
  while (i < a.size() && j < b.size()) {
    if (isDigit(a[i]) && isDigit(b[j])) {
      auto [first, endFirst] = digits(a, i);
      auto [second, endSecond] = digits(b, j);
      if (first != second)
        return first.size() != second.size() ? first.size() < second.size() : first < second;
      i = endFirst;
      j = endSecond;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

std::string tagsText(const std::string &folder) {
  std::vector<std::string> tags = checkpointTags(folder);
  if (tags.empty())
    return "there is none";
  std::string text = "there are: ";
  constexpr size_t shown = 20;
  for (size_t i = tags.size() - std::min(tags.size(), shown); i < tags.size(); ++i)
    text += tags[i] + (i + 1 < tags.size() ? ", " : "");
  return text + (tags.size() > shown ? concat(" (and ", tags.size() - shown, " before)") : "");
}

} // namespace

void checkTag(const std::string &tag) {
  // Not `latest`, which is the name of a file beside.
  if (!isFileName(tag) || tag == latestName || beginsWith(tag, latestName + ".tmp-"))
    fail(ErrorCode::InvalidArgument, "tag ", inQuotes(tag),
         ": expected the name of a folder: 1 to 200 characters without '/', '\\' and control characters, that begins "
         "with neither '.' nor '-' and is not 'latest'");
}

std::vector<std::string> checkpointTags(const std::string &folder) {
  std::vector<std::string> tags;
  for (std::string name : entries(folder)) {
    // Between the two renames of a replacement without exchange, the tag is there under this name only.
    if (beginsWith(name, replacedPrefix)) {
      name.erase(0, replacedPrefix.size());
      if (isCheckpoint(folder + "/" + name) || !isCheckpoint(folder + "/" + replacedPrefix + name))
        continue;
    } else if (!isFileName(name) || !isCheckpoint(folder + "/" + name)) {
      continue;
    }
    tags.push_back(name);
  }
  std::sort(tags.begin(), tags.end(), isBefore);
  return tags;
}

std::string latestTag(const std::string &folder) {
  if (!isFolder(folder))
    fail(ErrorCode::InvalidArgument, folder, ": no folder of checkpoints there");
  std::string path = folder + "/" + latestName;
  if (!isThere(path))
    fail(ErrorCode::InvalidArgument, path, ": missing: no checkpoint was completed there; name one by its tag, ",
         tagsText(folder));
  std::string tag = readTextFile(path, maxLatest);
  if (!tag.empty() && tag.back() == '\n')
    tag.pop_back();
  if (!isFileName(tag))
    fail(ErrorCode::BadFile, path, ": holds no tag; ", tagsText(folder));
  return tag;
}

std::string checkpointPath(const std::string &folder, const std::string &tag) {
  std::string name = tag.empty() ? latestTag(folder) : tag;
  if (!tag.empty())
    checkTag(tag);
  for (const std::string &path : {folder + "/" + name, folder + "/" + replacedPrefix + name})
    if (isCheckpoint(path))
      return path;
  fail(ErrorCode::InvalidArgument, folder, ": no checkpoint '", name, "'", tag.empty() ? ", which 'latest' names" : "",
       "; ", tagsText(folder));
}

CheckpointSave::CheckpointSave(const std::string &folder, const std::string &tag) : folder(folder), tag(tag) {
  checkTag(tag);
  if (!isFolder(folder)) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      fail(ErrorCode::Io, folder, ": cannot create the folder: ", error.message());
    syncFolder(folder + "/..");
  }
  descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    refuse(folder, "cannot open the folder");
  try {
    // File systems without locks leave it to the user that one process saves.
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      fail(ErrorCode::Io, folder, ": another process is saving a checkpoint there");
    removeLeftovers();
    std::string path = folder + "/" + temporaryPrefix + tag;
    if (mkdir(path.c_str(), 0777) != 0)
      refuse(path, "cannot create the folder");
    temporary = path;
  } catch (...) {
    close(descriptor);
    throw;
  }
}

CheckpointSave::~CheckpointSave() {
  std::error_code ignored;
  if (!temporary.empty())
    fs::remove_all(temporary, ignored);
  close(descriptor);
}

void CheckpointSave::removeLeftovers() {
  for (const std::string &name : entries(folder)) {
    std::string path = folder + "/" + name;
    if (beginsWith(name, replacedPrefix)) {
      std::string original = folder + "/" + name.substr(replacedPrefix.size());
      if (!isCheckpoint(original) && isCheckpoint(path)) {
        renameTo(path, original);
        continue;
      }
    }
    if (beginsWith(name, temporaryPrefix) || beginsWith(name, replacedPrefix) || beginsWith(name, latestName + ".tmp-"))
      removeTree(path);
  }
}

void CheckpointSave::replace() {
  std::string path = folder + "/" + tag;
  if (!isThere(path))
    return renameTo(std::exchange(temporary, ""), path);
  if (!isCheckpoint(path))
    fail(ErrorCode::InvalidArgument, path, ": is there and is no checkpoint, so that it is not replaced");
  if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0)
    return; // the old one is removed with the temporary folder
  std::string old = folder + "/" + replacedPrefix + tag;
  renameTo(path, old);
  renameTo(std::exchange(temporary, ""), path);
  temporary = old;
}

void CheckpointSave::publish() {
  syncFolder(temporary);
  replace();
  syncFolder(folder);
  AtomicFile latest(folder + "/" + latestName);
  std::string text = tag + "\n";
  latest.write(text.data(), text.size());
  latest.commit();
  syncFolder(folder);
  if (!temporary.empty())
    removeTree(std::exchange(temporary, ""));
}

void CheckpointSave::removeOldest(unsigned keep) {
  struct Known {
    fs::file_time_type time;
    std::string tag;
  };
  std::vector<Known> others;
  for (const std::string &other : checkpointTags(folder)) {
    std::error_code error;
    fs::file_time_type time = fs::last_write_time(folder + "/" + other + "/" + checkpointInfoName, error);
    if (other != tag && !error)
      others.push_back({time, other});
  }
  // By time, not by step: a run that went back to an earlier checkpoint writes smaller steps than it finds.
  std::sort(others.begin(), others.end(),
            [](const Known &a, const Known &b) { return a.time != b.time ? a.time < b.time : isBefore(a.tag, b.tag); });
  for (size_t i = 0; i + keep <= others.size(); ++i) {
    // Renamed first, so that half of a checkpoint is never seen under its tag.
    std::string path = folder + "/" + temporaryPrefix + others[i].tag;
    renameTo(folder + "/" + others[i].tag, path);
    removeTree(path);
  }
}

} // namespace ds
