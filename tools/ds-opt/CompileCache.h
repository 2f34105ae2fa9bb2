// What the driver asks of the cache of finished packages: whether this compilation has been done before, and to keep
// it.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_COMPILECACHE_H
#define DEEPSTRIDE_TOOLS_DSOPT_COMPILECACHE_H

#include "codegen/cpu/Target.h"
#include "tools/ds-opt/Options.h"

#include <ctime>
#include <sys/stat.h>

namespace deepstride {

/// DS_CACHE where it is set (empty: no cache), else $XDG_CACHE_HOME/deepstride, else ~/.cache/deepstride. Empty where
/// none of these is known.
std::string defaultCacheFolder();

/// One compilation of a package. The key covers the bytes of the model, its name, the bytes of a calibration file,
/// every option that is not about the cache or the output, the targets that were resolved, this processor, and the
/// build: ds-opt, every library it has loaded (LLVM's and libm's among them, which fold constants) and the linker.
/// Files beside the model are compared by content, too.
///
/// Not cached: what prints or writes more than a package (--report, --dump-dir), what is read from pipes, and models
/// with a file beside them that is larger than the whole cache.
class CompileCache {
public:
  CompileCache(const DriverOptions &options, const std::vector<CpuTarget> &targets);
  ~CompileCache();

  /// Writes the package that is kept, and prints what its compilation printed. False where there is none.
  bool deliver(const std::string &destination);

  /// To be called while the package grows beside its destination: what has that name later may be another's.
  void watch(const std::string &destination);
  /// Keeps the package that was watched and is finished now. `externalFiles`: what was read besides the model.
  /// Prints a warning where the cache cannot be written. Nothing is kept where a file that was read has changed since
  /// this object was made, or so shortly before that its times cannot tell.
  void keep(const std::vector<std::string> &externalFiles, const std::string &diagnostics);

private:
  bool isUsable();
  bool read(const std::string &path, std::string &contents);
  std::optional<std::string> digestOf(const std::string &externalFile, bool mustBeOld) const;

  const DriverOptions &options;
  std::string key; // empty: nothing is looked up or kept
  timespec start = {};
  std::vector<std::pair<std::string, struct stat>> named; // files of the command line, as they were read
  int package = -1;
};

} // namespace deepstride

#endif
