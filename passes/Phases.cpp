// The table of phases. It is filled from Phases.def and answers by name or by enumerator. What a phase runs is in
// Pipelines.cpp, what its contract demands in VerifyContract.cpp.
#include "passes/Phases.h"

#include "llvm/Support/FormatVariadic.h"

namespace deepstride {

static constexpr PhaseInfo phases[] = {
#define DS_PHASE(Name, name, summary, contract) {Phase::Name, name, summary, contract},
#include "passes/Phases.def"
};

std::string PhaseInfo::dumpName() const { return llvm::formatv("{0,0+2}-{1}.mlir", static_cast<int>(phase) + 1, name); }

llvm::ArrayRef<PhaseInfo> allPhases() { return phases; }

const PhaseInfo &phaseInfo(Phase phase) { return phases[static_cast<int>(phase)]; }

std::optional<Phase> parsePhase(llvm::StringRef name) {
  for (const PhaseInfo &info : phases)
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}

std::string phaseNames() {
  std::string names;
  for (const PhaseInfo &info : phases)
    names += (names.empty() ? "" : ", ") + info.name.str();
  return names;
}

} // namespace deepstride
