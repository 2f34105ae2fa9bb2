// ds-opt: a compiler driver and an mlir-opt in one tool; the arguments say which.
#include "tools/ds-opt/Crash.h"
#include "tools/ds-opt/Driver.h"
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

int main(int argc, char **argv) {
  std::string commandLine;
  for (int i = 0; i < argc; ++i)
    commandLine += quote(argv[i]);
  installCrashHandler(commandLine);

  llvm::SmallVector<llvm::StringRef> arguments(argv + 1, argv + argc);
  if (!isDriverCommandLine(arguments))
    return runOptTool(argc, argv);
  ParsedCommandLine line = parseDriverCommandLine(arguments);
  if (!line.error.empty()) {
    llvm::errs() << "ds-opt: " << line.error << "\n";
    return 2;
  }
  switch (line.request) {
  case Request::Help: llvm::outs() << driverHelp(); return 0;
  case Request::Version: llvm::outs() << "ds-opt " << version << "\n"; return 0;
  case Request::ListPhases: printPhases(); return 0;
  case Request::Compile: return runDriver(line.options);
  }
}
