// A folder of finished packages, each under the key of what it was compiled from. Knows files, not models.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_PACKAGECACHE_H
#define DEEPSTRIDE_TOOLS_DSOPT_PACKAGECACHE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace deepstride {

/// A file besides the model that a compilation read. Which ones these are is known only after the model was read.
struct Dependency {
  std::string file, digest;
};

struct CachedPackage {
  std::vector<Dependency> dependencies;
  std::string input;       // the model's name as it was given, which the diagnostics repeat
  std::string diagnostics; // what the compilation printed
};

/// Entries are folders KEY-NUMBER that never change: they appear by a rename, complete, and vanish when room is needed,
/// the one used longest ago first. Processes may share the folder: who reads an entry holds a lock on it, who adds one
/// holds the lock of the whole folder. What is delivered shares no byte on disk with the cache that could be written
/// through either (a copy, by reference where the file system can), and every byte is checked against its digest. An
/// output that holds these bytes already is left where it is.
class PackageCache {
public:
  PackageCache(std::string folder, uint64_t mostBytes) : folder(std::move(folder)), mostBytes(mostBytes) {}

  /// Writes the package that has this key to `destination` (as packageDestination gives it) where one is kept whose
  /// dependencies are what they were: `digestOf` gives the digest that a dependency has now, or nothing. Entries that
  /// are damaged are removed. Nothing was written where nothing is returned.
  std::optional<CachedPackage> deliver(llvm::StringRef key, llvm::StringRef input, const std::string &destination,
                                       llvm::function_ref<std::optional<std::string>(const std::string &)> digestOf);

  /// Keeps a copy of a finished package, of which `package` is the open folder, and makes room for it. Returns why it
  /// could not be kept, for a warning; what is larger than the whole cache, or was written to since it was finished, is
  /// left out without a word.
  std::string keep(llvm::StringRef key, const CachedPackage &facts, int package);

private:
  std::string addEntry(llvm::StringRef key, const CachedPackage &facts, int package);
  bool makeRoom(uint64_t bytes);

  std::string folder;
  uint64_t mostBytes;
};

} // namespace deepstride

#endif
