#include "runtime/comm/mpi/MpiPlugin.h"

#include "runtime/comm/mpi/Siblings.h"
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

// How often this process looks for the others of its host meanwhile.
constexpr std::chrono::milliseconds lookTime(250);

// MPI waits without end for a rank that does not come, so it does that in a thread of its own.
struct Opening {
  std::mutex mutex;
  std::condition_variable changed;
  char fault[512] = "";
  std::unique_ptr<Transport> transport;
  bool isOver = false;
};

} // namespace

std::unique_ptr<Transport> openMpiTransport(unsigned world, const std::string &host,
                                            std::chrono::milliseconds patience) {
  static OpenMpiTransport *open = load();
  auto opening = std::make_shared<Opening>();
  std::thread([opening] {
    Transport *transport = open(opening->fault, sizeof(opening->fault));
    std::lock_guard<std::mutex> lock(opening->mutex);
    opening->transport.reset(transport);
    opening->isOver = true;
    opening->changed.notify_one();
  }).detach();
  Siblings siblings(host, world);
  auto until = std::chrono::steady_clock::now() + patience;
  std::unique_lock<std::mutex> lock(opening->mutex);
  while (!opening->changed.wait_for(lock, lookTime, [&] { return opening->isOver; })) {
    std::string missing = siblings.missing(), stopped = siblings.stopped();
    if (!missing.empty())
      fail(ErrorCode::Collective, missing);
    if (std::chrono::steady_clock::now() >= until)
      fail(ErrorCode::Collective, "MPI has not brought the ranks together in ",
           static_cast<double>(patience.count()) / 1000,
           " s: ", stopped.empty() ? "one has ended, or does not look for the others" : stopped);
  }
  if (!opening->transport)
    fail(ErrorCode::Collective, "MPI: ", opening->fault);
  return std::move(opening->transport);
}

} // namespace ds
