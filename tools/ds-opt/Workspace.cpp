#include "tools/ds-opt/Workspace.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace deepstride {

Workspace::Workspace(llvm::StringRef prefix, llvm::ArrayRef<llvm::StringRef> packages) {
  llvm::SmallString<128> place;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, place);
  llvm::sys::path::append(place, prefix);
  auto make = [](const std::string &path) {
    return llvm::sys::fs::create_directory(path, /*IgnoreExisting=*/false, llvm::sys::fs::owner_all);
  };
  error = makeUnfinished(std::string(place), "", make, folder, removal);
  if (error)
    return;
  for (llvm::StringRef name : packages)
    inner.push_back(std::make_unique<SignalRemoval>(path(name)));
}

Workspace::~Workspace() {
  if (!error)
    (void)llvm::sys::fs::remove_directories(folder);
}

std::string Workspace::path(const llvm::Twine &name) const {
  llvm::SmallString<128> result(folder);
  llvm::sys::path::append(result, name);
  return std::string(result);
}

} // namespace deepstride
