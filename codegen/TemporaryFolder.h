// The folder in which a package grows: beside its destination, and gone when the process ends before it is complete.
#ifndef DEEPSTRIDE_CODEGEN_TEMPORARYFOLDER_H
#define DEEPSTRIDE_CODEGEN_TEMPORARYFOLDER_H

#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace deepstride {

/// What lies under a path until it is complete, and is removed should a signal end the process before.
class SignalRemoval {
public:
  explicit SignalRemoval(const std::string &path);
  SignalRemoval(const SignalRemoval &) = delete;
  SignalRemoval &operator=(const SignalRemoval &) = delete;
  ~SignalRemoval();

private:
  int slot;
};

/// Removes what all SignalRemovals name, the latest first: it may lie in a folder that was named before.
/// Async-signal-safe: handlers of signals that end the process call it.
void removeUnfinished();

/// Calls `make` with PREFIX, 8 random hex digits and SUFFIX until it does not say that something has this name. The
/// removal is there before: a signal may come right after something is made.
std::error_code makeUnfinished(const std::string &prefix, const std::string &suffix,
                               const std::function<std::error_code(const std::string &)> &make, std::string &path,
                               std::unique_ptr<SignalRemoval> &removal);

/// The folder that a package's name stands for: without slashes at its end, links and "." resolved. On failure the
/// second says why no package can be written there; nothing was changed.
std::pair<std::string, std::string> packageDestination(const std::string &name);

class TemporaryFolder {
public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() { remove(); }

  /// Makes DESTINATION.tmp-PID-NUMBER, locked as long as this process lives. First removes such folders beside it
  /// whose process is gone: those that nobody has locked, that belong to this user and hold nothing but parts of a
  /// package.
  std::error_code create(const std::string &destination);
  const std::string &path() const { return folder; }

  /// The folder becomes the destination, in one step; a package that is there is removed. On failure the second part
  /// of packageDestination's result, or the system's reason.
  std::string moveTo(const std::string &destination);
  void remove();

private:
  std::string folder;
  int lock = -1;
  std::unique_ptr<SignalRemoval> removal;
};

} // namespace deepstride

#endif
