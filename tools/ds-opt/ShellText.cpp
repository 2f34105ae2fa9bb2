// The driver's command line for shells and man, from the table that it is parsed with.
#include "tools/ds-opt/OptionTable.h"

#include "tools/commandline/Description.h"
#include "tools/ds-opt/Version.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace ::ds::commandline;

namespace deepstride {

static ProgramText describeDriver() {
  ProgramText program{"ds-opt", version, "compile ONNX models into packages that ds-run runs", {}, {}, {}};
  program.main.arguments = {"MODEL.onnx|IN.mlir"};
  std::string phases;
  for (const PhaseInfo &phase : allPhases())
    phases += (phases.empty() ? "" : "|") + std::string(phase.name);
  for (const OptionInfo &info : llvm::concat<const OptionInfo>(generalOptions(), trainingOptions()))
    if (!info.help.empty())
      program.main.options.push_back({{info.name.str()},
                                      info.placeholder == "PHASE" ? phases : info.placeholder.str(),
                                      info.argument == Argument::Optional,
                                      info.help.str()});
  program.notes = {"Exit codes: 0 ok, 1 diagnosed, 2 usage, 3 internal error with the path of a reproducer.",
                   "Environment: DS_CACHE is the folder of finished packages; empty, nothing is kept.",
                   "ds-opt is an mlir-opt, too: --help-hidden lists what it takes as one."};
  return program;
}

std::string shellText(Request request) {
  ProgramText program = describeDriver();
  switch (request) {
  case Request::BashCompletion: return bashCompletion(program);
  case Request::ZshCompletion: return zshCompletion(program);
  case Request::ManPage: return manPage(program);
  default: llvm_unreachable("no text for shells");
  }
}

} // namespace deepstride
