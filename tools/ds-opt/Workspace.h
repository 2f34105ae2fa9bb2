// A folder for what ds-opt needs while it runs.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_WORKSPACE_H
#define DEEPSTRIDE_TOOLS_DSOPT_WORKSPACE_H

#include "codegen/TemporaryFolder.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

namespace deepstride {

/// Goes away with this object, should a signal end the process, too.
class Workspace {
public:
  /// Among the system's temporary files. `packages`: names of the folders that will be in it.
  Workspace(llvm::StringRef prefix, llvm::ArrayRef<llvm::StringRef> packages);
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;
  ~Workspace();

  std::string path(const llvm::Twine &name) const;
  std::error_code error;

private:
  std::string folder;
  std::unique_ptr<SignalRemoval> removal;
  std::vector<std::unique_ptr<SignalRemoval>> inner; // what is removed without folders in it comes first
};

} // namespace deepstride

#endif
