// Fatal signals end in exit code 3. The handler may only do what is safe in a signal, so path and text of the
// reproducer are prepared before; it writes them and leaves without destructors, since other threads may hold locks.
#include "tools/ds-opt/Crash.h"

#include "codegen/TemporaryFolder.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <new>
#include <unistd.h>

namespace deepstride {

/// Where a crash belongs, whatever library it happens in.
static constexpr char bugReport[] =
    "; this is a bug in ds-opt, please report it in the issue tracker of Deepstride with the reproducer ";

static char crashPath[512], crashProgram[512], crashText[8192], crashStage[64];
static constexpr int fatalSignals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
static constexpr int interrupts[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU};

static void put(int file, const char *text) {
  if (write(file, text, strlen(text)) < 0)
    return;
}

/// The user, or the system, ends a process that is not at fault.
static void handleInterrupt(int signal) {
  removeUnfinished();
  raise(signal); // with the usual effect: SA_RESETHAND
}

static void handleSignal(int) {
  removeUnfinished();
  int file = open(crashPath, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0) {
    put(file, crashText);
    put(file, "# crashed in: ");
    put(file, crashStage);
    put(file, "\n");
    close(file);
  }
  put(STDERR_FILENO, "ds-opt: internal error: crashed in ");
  put(STDERR_FILENO, crashStage);
  put(STDERR_FILENO, bugReport);
  put(STDERR_FILENO, crashPath);
  if (access(crashProgram, R_OK) == 0) { // MLIR writes it first
    put(STDERR_FILENO, ", the program ");
    put(STDERR_FILENO, crashProgram);
  }
  put(STDERR_FILENO, " and the model\n");
  _exit(internalErrorExit);
}

[[noreturn]] static void reportOutOfMemory() {
  removeUnfinished();
  put(STDERR_FILENO, "ds-opt: error: out of memory in ");
  put(STDERR_FILENO, crashStage);
  put(STDERR_FILENO, "\n");
  _exit(1);
}

static void copy(char *target, size_t size, llvm::StringRef text) {
  size_t length = std::min(size - 1, text.size());
  memcpy(target, text.data(), length);
  target[length] = 0;
}

static std::mutex stageMutex; // of who shows the stage; a signal reads it without

void enterStage(llvm::StringRef stage) {
  std::lock_guard<std::mutex> lock(stageMutex);
  copy(crashStage, sizeof(crashStage), stage);
}

std::string currentStage() {
  std::lock_guard<std::mutex> lock(stageMutex);
  return crashStage;
}

std::string reproducerPath(llvm::StringRef extension) {
  llvm::SmallString<128> path;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, path);
  llvm::sys::path::append(path, "ds-opt-reproducer-" + std::to_string(getpid()) + extension.str());
  return std::string(path);
}

void installCrashHandler(const std::string &commandLine) {
  copy(crashPath, sizeof(crashPath), reproducerPath(".sh"));
  copy(crashProgram, sizeof(crashProgram), reproducerPath(".mlir"));
  copy(crashText, sizeof(crashText), commandLine + "\n");
  enterStage("start");
  llvm::setBugReportMsg("This is a bug in ds-opt: please report it in the issue tracker of Deepstride.\n");
  // What a model asks for is not a bug. Both kinds of allocation end here: those of C++ and those of LLVM.
  std::set_new_handler(reportOutOfMemory);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { reportOutOfMemory(); });
  // A stack of its own: the crash may be an overflow of the usual one.
  static char stack[1 << 16];
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_handler = handleSignal;
  action.sa_flags = SA_ONSTACK;
  for (int signal : fatalSignals)
    sigaction(signal, &action, nullptr);
  action.sa_handler = handleInterrupt;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (int signal : interrupts) {
    struct sigaction inherited = {};
    if (sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN) // nohup
      sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error of write, not the end of the process
}

int reportInternalError(llvm::StringRef what, llvm::StringRef reproducer) {
  llvm::errs() << "ds-opt: internal error: " << what << bugReport << reproducer << "\n";
  return internalErrorExit;
}

} // namespace deepstride
