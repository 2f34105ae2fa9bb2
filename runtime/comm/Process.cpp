#include "runtime/comm/Process.h"

#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace ds {
namespace {

struct ProcStat {
  char state = 0;
  int64_t parent = 0, startTime = 0;
};

// The name, in parentheses, may hold anything; fields are counted from behind it.
ProcStat readStat(int64_t number) {
  std::ifstream file("/proc/" + std::to_string(number) + "/stat");
  std::stringstream content;
  content << file.rdbuf();
  std::string text = content.str();
  ProcStat result;
  size_t end = text.rfind(')');
  if (end == std::string::npos)
    return result;
  std::istringstream fields(text.substr(end + 1));
  fields >> result.state >> result.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field)
    fields >> skipped;
  fields >> result.startTime;
  return result;
}

ProcessIdentity identify() {
  ProcessIdentity result;
  if (std::string boot; std::ifstream("/proc/sys/kernel/random/boot_id") >> boot)
    result.boot = boot;
  result.number = getpid();
  ProcStat own = readStat(result.number);
  result.startTime = own.startTime;
  result.parent = own.parent;
  struct stat space = {};
  if (stat("/proc/self/ns/pid", &space) == 0)
    result.numberSpace = space.st_ino;
  return result;
}

} // namespace

const ProcessIdentity &thisProcess() {
  static thread_local ProcessIdentity identity;
  if (identity.number != getpid()) // also after a fork
    identity = identify();
  return identity;
}

ProcessIdentity identityOf(int64_t number) {
  ProcessIdentity result = thisProcess();
  ProcStat stat = readStat(number);
  result.number = number;
  result.startTime = stat.startTime;
  result.parent = stat.parent;
  return result;
}

bool isThisProcess(const ProcessIdentity &process) {
  const ProcessIdentity &self = thisProcess();
  return process.boot == self.boot && process.numberSpace == self.numberSpace && process.number == self.number;
}

ProcessState stateOf(const ProcessIdentity &process) {
  const ProcessIdentity &self = thisProcess();
  if (process.boot != self.boot || process.numberSpace != self.numberSpace || process.startTime == 0)
    return ProcessState::Unknown;
  ProcStat stat = readStat(process.number);
  if (stat.state == 0 || stat.state == 'Z' || stat.state == 'X' || stat.startTime != process.startTime)
    return ProcessState::Gone;
  return stat.state == 'T' || stat.state == 't' ? ProcessState::Stopped : ProcessState::Running;
}

} // namespace ds
