// LLVM's parser keeps the values of its options in globals, so these are parsed once, when it is known which passes
// there are: some options name them.
#include "tools/ds-opt/MlirOptions.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "tools/ds-opt/Registration.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;

namespace deepstride {

bool isMlirOption(StringRef argument) {
  bool isOption = argument.consume_front("-");
  argument.consume_front("-");
  return isOption && argument.starts_with("mlir-");
}

bool parseMlirOptions(ArrayRef<std::string> arguments, std::string &wrong) {
  if (arguments.empty())
    return true;
  registerAllPassesAndPipelines(); // options name passes, of those that are known by now
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  SmallVector<const char *> words{"ds-opt"};
  for (const std::string &argument : arguments) {
    StringRef name = StringRef(argument).split('=').first;
    if (!llvm::cl::getRegisteredOptions().count(name.ltrim('-'))) {
      wrong = "unknown option '" + name.str() + "'; --help-hidden lists those of MLIR";
      return false;
    }
    words.push_back(argument.c_str());
  }
  llvm::raw_string_ostream stream(wrong);
  if (llvm::cl::ParseCommandLineOptions(static_cast<int>(words.size()), words.data(), "", &stream))
    return true;
  StringRef line = StringRef(wrong).split('\n').first;
  line.consume_front("ds-opt: ");
  wrong = line.str(); // nothing where LLVM has said itself what a value should be
  return false;
}

std::string loadPassPlugins(ArrayRef<std::string> files) {
  for (const std::string &file : files) {
    auto plugin = PassPlugin::load(file);
    if (!plugin) {
      std::string reason = llvm::toString(plugin.takeError());
      return "--load-pass-plugin expects the library of a pass plugin: " +
             StringRef(reason).split('\n').first.str(); // names the file
    }
    plugin->registerPassRegistryCallbacks();
  }
  return "";
}

Instruments::Instruments(bool isOn) : isOn(isOn) {
  if (!isOn)
    return;
  applyDefaultTimingManagerCLOptions(timing);
  scope = timing.getRootScope();
}

bool Instruments::attach(PassManager &pm) {
  if (!isOn)
    return true;
  if (failed(applyPassManagerCLOptions(pm)))
    return false;
  if (!parts.empty())
    parts.back().stop(); // they run one after the other
  parts.push_back(scope.nest("pipeline " + std::to_string(parts.size() + 1)));
  pm.enableTiming(parts.back());
  return true;
}

bool Instruments::namesReproducer(ArrayRef<std::string> arguments) {
  return llvm::any_of(arguments,
                      [](StringRef argument) { return argument.contains("mlir-pass-pipeline-crash-reproducer"); });
}

} // namespace deepstride
