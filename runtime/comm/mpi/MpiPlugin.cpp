#include "runtime/comm/mpi/MpiPlugin.h"

#include "runtime/core/Error.h"

#include <dlfcn.h>
#include <unistd.h>

namespace ds {
namespace {

std::string folderOfProgram() {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  std::string text(path, length > 0 ? static_cast<size_t>(length) : 0);
  return text.substr(0, std::min(text.rfind('/'), text.size()));
}

// Stays loaded: MPI ends with the process.
OpenMpiTransport *load() {
  std::string folder = folderOfProgram(), tried, reason;
  for (const char *place : {"", "/../lib", "/../" DS_LIBRARY_FOLDER}) {
    std::string path = folder + place + "/libds_mpi.so";
    if (access(path.c_str(), F_OK) != 0) {
      if (tried.find(path) == std::string::npos)
        tried += (tried.empty() ? "" : ", ") + path;
      continue;
    }
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    void *symbol = library ? dlsym(library, DS_MPI_SYMBOL_NAME) : nullptr;
    if (symbol)
      return reinterpret_cast<OpenMpiTransport *>(symbol);
    const char *why = dlerror();
    fail(ErrorCode::Collective, "could not load ", path, ": ", why ? why : "unknown reason");
  }
  fail(ErrorCode::Collective, "transport mpi needs libds_mpi.so, found none of ", tried,
       "; it is built where Open MPI is installed (libopenmpi-dev)");
}

} // namespace

std::unique_ptr<Transport> openMpiTransport() {
  static OpenMpiTransport *open = load();
  char fault[512] = "";
  std::unique_ptr<Transport> result(open(fault, sizeof(fault)));
  if (!result)
    fail(ErrorCode::Collective, "MPI: ", fault);
  return result;
}

} // namespace ds
