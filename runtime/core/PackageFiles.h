// Where the files of a package come from: a folder, or memory that somebody else keeps.
#ifndef DEEPSTRIDE_RUNTIME_CORE_PACKAGEFILES_H
#define DEEPSTRIDE_RUNTIME_CORE_PACKAGEFILES_H

#include "runtime/core/MappedFile.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ds {

// A file of somebody else's, which lives longer than what uses it.
struct MemoryFile {
  std::string name;
  const void *data = nullptr;
  size_t size = 0;
};

// A shared object that is open, by the number of its file, which it keeps as long. The loader knows libraries by their
// paths: under that of the file it would take another package that lies where one was, or whose path is the same from
// another folder, for the one that is open.
class LoadedCode {
public:
  LoadedCode() = default;
  LoadedCode(LoadedCode &&other) noexcept { *this = std::move(other); }
  LoadedCode &operator=(LoadedCode &&other) noexcept;
  ~LoadedCode();

  explicit operator bool() const { return handle != nullptr; }
  void *symbol(const char *name) const; // null when it exports no such one

private:
  friend class PackageFiles;
  void *handle = nullptr;
  int descriptor = -1;
};

class PackageFiles {
public:
  // Throws Error(BadPackage) when there is no such folder.
  explicit PackageFiles(const std::string &folder);
  // Throws Error(InvalidArgument) for names that are no file names, or that come twice.
  explicit PackageFiles(std::vector<MemoryFile> files);

  bool has(const std::string &name) const;
  bool isEmptyFile(const std::string &name) const; // without opening what may be a pipe
  MappedFile open(const std::string &name) const;
  std::string text(const std::string &name, size_t limit) const; // throws Error(BadFile) when it is longer
  std::vector<std::string> names() const;                        // sorted

  // False when the loader refuses, as dlerror says.
  LoadedCode openCode(const std::string &name) const;

  const std::string &path() const { return folder; } // "memory" where there is no folder

private:
  std::string pathOf(const std::string &name) const { return folder + "/" + name; }

  std::string folder;
  bool isMemory = false;
  std::map<std::string, MemoryFile> files; // in memory
};

} // namespace ds
#endif
