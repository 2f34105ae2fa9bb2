// Streams, devices and files are written in their own ways.
#include "tools/ds-opt/ModuleFile.h"

#include "codegen/TemporaryFolder.h"
#include "tools/ds-opt/Message.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include <sys/stat.h>
#include <sys/sysmacros.h>

using namespace mlir;

namespace deepstride {

static bool writeBy(llvm::function_ref<void(llvm::raw_ostream &)> print, StringRef path) {
  if (path.empty() || path == "-") {
    print(llvm::outs());
    return true;
  }
  auto fail = [&](std::error_code code) {
    printMessage("ds-opt: error: cannot write '" + path + "': " + code.message());
    return false;
  };
  int file = -1;
  std::string temporary;
  std::unique_ptr<SignalRemoval> removal;
  llvm::sys::fs::file_status status;
  bool isStream = !llvm::sys::fs::status(path, status) && llvm::sys::fs::is_other(status);
  auto make = [&](const std::string &name) {
    return llvm::sys::fs::openFileForWrite(name, file, llvm::sys::fs::CD_CreateNew, llvm::sys::fs::OF_Text);
  };
  if (std::error_code code = isStream ? llvm::sys::fs::openFileForWrite(path, file, llvm::sys::fs::CD_OpenExisting)
                                      : makeUnfinished(path.str() + ".", ".tmp", make, temporary, removal))
    return fail(code);
  {
    llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
    print(stream);
    stream.close();
    if (stream.has_error()) {
      std::error_code code = stream.error();
      stream.clear_error();
      if (!isStream)
        (void)llvm::sys::fs::remove(temporary);
      return fail(code);
    }
  }
  if (isStream)
    return true;
  if (std::error_code code = llvm::sys::fs::rename(temporary, path)) {
    (void)llvm::sys::fs::remove(temporary);
    return fail(code);
  }
  return true;
}

bool writeModule(ModuleOp program, StringRef path, bool withLocations) {
  OpPrintingFlags flags;
  flags.enableDebugInfo(withLocations);
  auto print = [&](llvm::raw_ostream &stream) {
    program->print(stream, flags);
    stream << "\n";
  };
  return writeBy(print, path);
}

bool writeText(StringRef text, StringRef path) {
  return writeBy([&](llvm::raw_ostream &stream) { stream << text; }, path);
}

bool isNoFile(StringRef path) {
  struct stat found = {}, null = {};
  if (path == "-" || stat(path.str().c_str(), &found) != 0)
    return false;
  if (S_ISDIR(found.st_mode)) {
    bool isPackage = llvm::sys::fs::exists(path + "/manifest.json");
    printMessage("ds-opt: error: " + path + ": found a " +
                 (isPackage ? "package, which is compiled already" : "folder") + ", expected a model");
    return true;
  }
  if (!S_ISCHR(found.st_mode))
    return false;
  bool isNull = stat("/dev/null", &null) == 0 && null.st_rdev == found.st_rdev;
  constexpr unsigned terminals[] = {4, 5}, pseudoTerminals = 136; // major numbers, of Documentation/admin-guide/devices
  unsigned kind = major(found.st_rdev);
  if (isNull || llvm::is_contained(terminals, kind) || (kind >= pseudoTerminals && kind < pseudoTerminals + 8))
    return false;
  printMessage("ds-opt: error: " + path + ": found a device, expected a file");
  return true;
}

} // namespace deepstride
