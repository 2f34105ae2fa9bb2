// The options by which MLIR shows what passes do, for the driver's pass managers: --mlir-print-ir-after-all,
// --mlir-timing and their kin, and plugins.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_MLIROPTIONS_H
#define DEEPSTRIDE_TOOLS_DSOPT_MLIROPTIONS_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/ArrayRef.h"

#include <list>
#include <memory>
#include <string>
#include <vector>

namespace deepstride {

/// Whether an argument has a name as options of MLIR have them.
bool isMlirOption(llvm::StringRef argument);
/// Parses such arguments, whose values are kept by MLIR itself. On failure `wrong` is what is, in one line, or nothing
/// where that was printed.
bool parseMlirOptions(llvm::ArrayRef<std::string> arguments, std::string &wrong);

/// Loads pass plugins; returns what is wrong, in one line, or nothing.
std::string loadPassPlugins(llvm::ArrayRef<std::string> files);

/// What all pass managers of a compilation have in common: one table of times, in which each has a part of its own.
/// MLIR knows a timer by the address of its pass, which a later manager's pass may have, too.
class Instruments {
public:
  explicit Instruments(bool isOn);
  /// False after a diagnostic.
  bool attach(mlir::PassManager &pm);
  /// Whether the command line says where reproducers go.
  static bool namesReproducer(llvm::ArrayRef<std::string> arguments);

private:
  bool isOn;
  mlir::DefaultTimingManager timing;
  mlir::TimingScope scope;
  std::list<mlir::TimingScope> parts; // pass managers refer to theirs
};

} // namespace deepstride

#endif
