// The machine of a target as ds-schedule-kernels wants it told: which instructions it has, and what they were measured
// to do.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_MACHINE_H
#define DEEPSTRIDE_TOOLS_DSOPT_MACHINE_H

#include "codegen/cpu/Target.h"

#include "tools/ds-opt/Options.h"
#include "llvm/ADT/StringRef.h"

namespace deepstride {

/// The option `machine` of ds-schedule-kernels. Rates come from `ceilings`, a file that `ds-run bench --json` wrote on
/// that machine; without one they are measured, in some hundredths of a second, where the target is this machine and
/// `asksForRates`, and else what the instructions do on paper. On failure says why in `error`, in one line.
std::string machineOf(const CpuTarget &target, bool isThisMachine, bool asksForRates, llvm::StringRef ceilings,
                      std::string &error);

/// The targets of --mcpu, each with its machine; nothing after a message where one is unknown or named twice.
std::optional<std::vector<CpuTarget>> resolveTargets(const DriverOptions &options);

} // namespace deepstride

#endif
