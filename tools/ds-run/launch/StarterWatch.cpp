#include "tools/ds-run/launch/StarterWatch.h"

#include "runtime/comm/Process.h"
#include "runtime/core/Error.h"

#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <sys/syscall.h>

namespace ds {
namespace {

bool hasLivingChild(pid_t parent) {
  bool found = false;
  DIR *folder = opendir("/proc");
  while (const dirent *entry = folder && !found ? readdir(folder) : nullptr) {
    ProcessIdentity process = identityOf(std::atoll(entry->d_name));
    found = process.startTime != 0 && process.parent == parent && stateOf(process) != ProcessState::Gone;
  }
  if (folder)
    closedir(folder);
  return found;
}

// Where the main thread waits for a lock; empty: it does something else.
std::string lockOf(pid_t process) {
  std::ifstream file(concat("/proc/", process, "/task/", process, "/syscall"));
  std::string line;
  std::getline(file, line);
  return line.rfind(concat(SYS_futex, " "), 0) == 0 ? line : "";
}

} // namespace

bool StarterWatch::isStuck() {
  std::string now = lockOf(starter);
  bool isAlone = !hasLivingChild(starter);
  hadChildren |= !isAlone;
  if (now.empty() || now != lock || !isAlone || !hadChildren) {
    lock = now;
    since = Clock::now();
    return false;
  }
  return Clock::now() - *since >= patience;
}

} // namespace ds
