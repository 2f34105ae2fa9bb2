// ds-opt as an mlir-opt: all of upstream's dialects, passes and options, and ours. Options are looked up before LLVM
// parses them, because its parser exits 1 where usage errors of ds-opt exit 2.
#include "tools/ds-opt/OptTool.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tools/ds-opt/Crash.h"
#include "tools/ds-opt/Registration.h"

using namespace mlir;

namespace deepstride {

/// The first argument that is no option of the tool.
static StringRef findUnknownOption(int argc, char **argv) {
  auto &options = llvm::cl::getRegisteredOptions();
  for (int i = 1; i < argc; ++i) {
    StringRef argument(argv[i]);
    if (argument == "--")
      break;
    if (!argument.consume_front("-") || argument.empty())
      continue;
    argument.consume_front("-");
    StringRef name = argument.split('=').first;
    if (name != "o" && !options.count(name)) // -o is registered by the parser itself
      return argv[i];
  }
  return {};
}

int runOptTool(int argc, char **argv) {
  DialectRegistry registry;
  registerDialects(registry);
  registerAllPassesAndPipelines();
  std::string header = registerCLIOptions("ds-opt", registry);
  if (StringRef unknown = findUnknownOption(argc, argv); !unknown.empty()) {
    llvm::errs() << "ds-opt: unknown option '" << unknown.split('=').first << "'; --help lists the options\n";
    return 2;
  }
  auto [input, output] = parseCLIOptions(argc, argv, header);
  enterStage("passes");
  return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
}

} // namespace deepstride
