// ds-opt: a compiler driver and an mlir-opt in one tool; the arguments say which.
#include "tools/ds-opt/Crash.h"
#include "tools/ds-opt/Driver.h"
#include "tools/ds-opt/Message.h"
#include "tools/ds-opt/OptTool.h"
#include "tools/ds-opt/Version.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace deepstride;

static std::string quote(llvm::StringRef argument) {
  std::string text = "'";
  for (char c : argument)
    text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "' ";
}

static void printPhases() {
  for (const PhaseInfo &info : allPhases())
    llvm::outs() << info.name << ": " << info.summary << "; at its end: " << info.contract << "\n";
}

/// What was printed may not have arrived; LLVM's own check of it, at exit, would end in a crash.
static int afterOutput(int code) {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  if (!error)
    return code;
  llvm::errs() << "ds-opt: error: cannot write to standard output: " << error.message() << "\n";
  return code ? code : 1;
}

int main(int argc, char **argv) {
  std::string commandLine;
  for (int i = 0; i < argc; ++i)
    commandLine += quote(argv[i]);
  installCrashHandler(commandLine);

  llvm::SmallVector<llvm::StringRef> arguments(argv + 1, argv + argc);
  if (!isDriverCommandLine(arguments))
    return afterOutput(runOptTool(argc, argv));
  ParsedCommandLine line = parseDriverCommandLine(arguments);
  if (!line.error.empty()) {
    printMessage("ds-opt: " + line.error);
    return 2;
  }
  switch (line.request) {
  case Request::Help: llvm::outs() << driverHelp(); return afterOutput(0);
  case Request::Version: llvm::outs() << "ds-opt " << version << "\n"; return afterOutput(0);
  case Request::ListPhases: printPhases(); return afterOutput(0);
  case Request::BashCompletion:
  case Request::ZshCompletion:
  case Request::ManPage: llvm::outs() << shellText(line.request); return afterOutput(0);
  case Request::Compile: return afterOutput(runDriver(line.options));
  }
}
