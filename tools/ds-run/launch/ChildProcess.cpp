#include "tools/ds-run/launch/ChildProcess.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ds {
namespace {

std::vector<char *> pointersTo(const std::vector<std::string> &words) {
  std::vector<char *> pointers;
  for (const std::string &word : words)
    pointers.push_back(const_cast<char *>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child. Returns only when it fails.
void becomeProgram(const ChildSpec &child, pid_t parent) {
  setpgid(0, child.group);
  if (child.deathSignal && (prctl(PR_SET_PDEATHSIG, child.deathSignal) != 0 || getppid() != parent))
    raise(SIGKILL); // the launcher has ended already
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGPIPE, SIGXFSZ})
    std::signal(number, SIG_DFL);
  // All three above the standard ones first: one may be another's target.
  int standard[3] = {child.input, child.output, child.error};
  for (int &descriptor : standard)
    if ((descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)) < 0)
      return;
  for (int i = 0; i < 3; ++i)
    if (dup2(standard[i], i) < 0)
      return;
  for (int descriptor : child.inherited)
    if (fcntl(descriptor, F_SETFD, 0) != 0)
      return;
  execvpe(child.arguments[0].c_str(), pointersTo(child.arguments).data(), pointersTo(child.environment).data());
}

} // namespace

pid_t startChild(const ChildSpec &child) {
  int report[2]; // closed by a successful exec, else it carries errno
  if (pipe2(report, O_CLOEXEC) != 0)
    fail(ErrorCode::Io, "cannot start ", child.arguments[0], ": ", std::strerror(errno));
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    becomeProgram(child, parent);
    int why = errno;
    _exit(write(report[1], &why, sizeof(why)) == sizeof(why) ? 127 : 126);
  }
  int why = pid < 0 ? errno : 0;
  close(report[1]);
  if (pid > 0) {
    setpgid(pid, child.group); // here, too: whoever is first
    ssize_t count;
    do
      count = read(report[0], &why, sizeof(why));
    while (count < 0 && errno == EINTR);
    if (count != sizeof(why))
      why = 0;
    else
      waitpid(pid, nullptr, 0);
  }
  close(report[0]);
  if (why)
    fail(ErrorCode::Io, "cannot start ", child.arguments[0], ": ", std::strerror(why));
  return pid;
}

int exitCodeOf(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

std::string signalText(int number) {
  const char *name = sigabbrev_np(number);
  return name ? concat("SIG", name) : concat("signal ", number);
}

std::optional<long> outOfMemoryKills() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  for (long value = 0; file >> name >> value;)
    if (name == "oom_kill")
      return value;
  return std::nullopt;
}

std::string causeOfKill(std::optional<long> before, std::optional<long> now) {
  if (!before || !now)
    return ", perhaps for want of memory";
  return *now > *before
             ? ": the kernel's out-of-memory killer was at work, fewer ranks or smaller batches need less memory"
             : "";
}

} // namespace ds
