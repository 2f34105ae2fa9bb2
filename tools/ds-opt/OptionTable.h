// One row of the driver's command line: an option, its argument, what it does.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_OPTIONTABLE_H
#define DEEPSTRIDE_TOOLS_DSOPT_OPTIONTABLE_H

#include "tools/ds-opt/Options.h"
#include "llvm/ADT/ArrayRef.h"

namespace deepstride {

enum class Argument { None, Optional, Required };

struct OptionInfo {
  llvm::StringRef name;
  Argument argument;
  llvm::StringRef placeholder, help;                                // without help it is not listed
  std::string (*apply)(ParsedCommandLine &, llvm::StringRef value); // returns an error, or nothing
  bool mayRepeat = false;                                           // else two values would hide one
};

/// All others than those of --mode=train.
llvm::ArrayRef<OptionInfo> generalOptions();
/// The options of --mode=train.
llvm::ArrayRef<OptionInfo> trainingOptions();
/// What contradicts what among them; empty where nothing does.
std::string checkTraining(const DriverOptions &options);
/// Reads --config and what follows from it; prints what is wrong, and then returns false.
bool resolveTraining(DriverOptions &options);

} // namespace deepstride

#endif
