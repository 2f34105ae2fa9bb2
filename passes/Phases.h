// The phases of a compilation as an enumeration and a table, both from Phases.def.
#ifndef DEEPSTRIDE_PASSES_PHASES_H
#define DEEPSTRIDE_PASSES_PHASES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace deepstride {

/// Which ops share a kernel: none; elementwise ones, around products that stand alone; and products with them.
enum class Fusion { None, Generic, Specialized };

enum class Phase {
#define DS_PHASE(Name, name, summary, contract) Name,
#include "passes/Phases.def"
};

struct PhaseInfo {
  Phase phase;
  llvm::StringLiteral name, summary, contract;

  /// The name of the file that --dump-dir writes at the phase's end: "02-graph.mlir".
  std::string dumpName() const;
};

llvm::ArrayRef<PhaseInfo> allPhases();
const PhaseInfo &phaseInfo(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef name);
/// "import, graph, ...": what a message about an unknown phase lists as legal.
std::string phaseNames();

} // namespace deepstride

#endif
