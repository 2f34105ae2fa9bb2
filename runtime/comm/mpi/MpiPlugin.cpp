#include "runtime/comm/mpi/MpiPlugin.h"

#include "runtime/core/Error.h"

#include <condition_variable>
#include <dlfcn.h>
#include <mutex>
#include <thread>
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

// MPI waits without end for a rank that does not come, so it does that in a thread of its own.
struct Opening {
  std::mutex mutex;
  std::condition_variable changed;
  char fault[512] = "";
  std::unique_ptr<Transport> transport;
  bool isOver = false;
};

} // namespace

std::unique_ptr<Transport> openMpiTransport(std::chrono::milliseconds patience) {
  static OpenMpiTransport *open = load();
  auto opening = std::make_shared<Opening>();
  std::thread([opening] {
    Transport *transport = open(opening->fault, sizeof(opening->fault));
    std::lock_guard<std::mutex> lock(opening->mutex);
    opening->transport.reset(transport);
    opening->isOver = true;
    opening->changed.notify_one();
  }).detach();
  std::unique_lock<std::mutex> lock(opening->mutex);
  if (!opening->changed.wait_for(lock, patience, [&] { return opening->isOver; }))
    fail(ErrorCode::Collective, "MPI has not brought the ranks together in ",
         static_cast<double>(patience.count()) / 1000, " s: one has ended, or does not look for the others");
  if (!opening->transport)
    fail(ErrorCode::Collective, "MPI: ", opening->fault);
  return std::move(opening->transport);
}

} // namespace ds
