// ds-opt as an mlir-opt: all of upstream's dialects, passes and options, and ours. Options are looked up before LLVM
// parses them, because its parser exits 1 where usage errors of ds-opt exit 2.
#include "tools/ds-opt/OptTool.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tools/commandline/Nearest.h"
#include "tools/ds-opt/Crash.h"
#include "tools/ds-opt/ModuleFile.h"
#include "tools/ds-opt/Registration.h"
#include "tools/ds-opt/VerifyNumerics.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

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

/// The first plugin of the command line that cannot be loaded, and why; MLIR would go on without its passes.
static std::string findWrongPlugin(ArrayRef<char *> arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    auto [option, file] = StringRef(arguments[i]).split('=');
    option.consume_front("-");
    option.consume_front("-");
    if (option != "load-pass-plugin" && option != "load-dialect-plugin")
      continue;
    bool hasFile = StringRef(arguments[i]).contains('=') || i + 1 == arguments.size();
    std::string name = hasFile ? file.str() : arguments[i + 1];
    llvm::Error error = llvm::Error::success();
    if (option == "load-pass-plugin")
      error = llvm::joinErrors(std::move(error), PassPlugin::load(name).takeError());
    else
      error = llvm::joinErrors(std::move(error), DialectPlugin::load(name).takeError());
    if (error)
      return ("--" + option +
              " expects the library of a plugin: " + StringRef(llvm::toString(std::move(error))).split('\n').first)
          .str();
  }
  return "";
}

/// ds-run lies beside this executable.
static std::string findRunTool(const char *self) {
  SmallString<128> path(llvm::sys::fs::getMainExecutable(self, reinterpret_cast<void *>(&findUnknownOption)));
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::append(path, "ds-run");
  return std::string(path);
}

int runOptTool(int argc, char **argv) {
  // Taken out before LLVM sees it: it is about the whole run, not about one pass.
  SmallVector<char *> arguments(argv, argv + argc);
  bool verifies = llvm::any_of(arguments, [](StringRef argument) { return argument == "--verify-numerics"; });
  llvm::erase_if(arguments, [](StringRef argument) { return argument == "--verify-numerics"; });
  argc = static_cast<int>(arguments.size());
  argv = arguments.data();

  DialectRegistry registry;
  registerDialects(registry);
  registerAllPassesAndPipelines();
  std::string header = registerCLIOptions("ds-opt", registry);
  if (StringRef unknown = findUnknownOption(argc, argv); !unknown.empty()) {
    std::string name = unknown.split('=').first.str();
    std::vector<std::string> legal;
    for (const auto &option : llvm::cl::getRegisteredOptions().keys())
      legal.push_back("--" + option.str());
    llvm::sort(legal); // of several that are as near, the same one each time
    std::string meant = ::ds::commandline::didYouMean(name, legal);
    llvm::errs() << "ds-opt: unknown option '" << name << "'" << (meant.empty() ? "; --help lists the options" : meant)
                 << "\n";
    return 2;
  }
  if (std::string wrong = findWrongPlugin(arguments); !wrong.empty()) {
    llvm::errs() << "ds-opt: " << wrong << "\n";
    return 2;
  }
  auto [input, output] = parseCLIOptions(argc, argv, header);
  if (isNoFile(input))
    return 1;
  enterStage("passes");
  if (!verifies)
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldVerifyDiagnostics()) {
    llvm::errs() << "ds-opt: --verify-numerics and --verify-diagnostics exclude each other\n";
    return 2;
  }
  return verifyNumerics(input, output, registry, config, findRunTool(argv[0]));
}

} // namespace deepstride
