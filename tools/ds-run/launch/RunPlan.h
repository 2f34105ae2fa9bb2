// Carries out what LaunchPlan says: runs the ranks to their end, and again where one fails and --restarts says so.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RUNPLAN_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RUNPLAN_H

#include "tools/ds-run/launch/Launch.h"
#include "tools/ds-run/launch/LaunchPlan.h"

#include <string>
#include <vector>

namespace ds {

// What each rank is: the same command without the options of ranks, or the program of --exec. Ranks of mpirun and srun
// run that by way of ds-run, for the sake of their output.
std::vector<std::string> programOf(const Arguments &arguments, bool isHere);

// The exit code. Throws Error where ranks cannot be started.
int runPlan(const LaunchPlan &plan, const LaunchOptions &options, const Arguments &arguments,
            const LaunchedCommand &command);

// A command of train that goes on from the latest checkpoint, whatever it said of --resume before.
std::vector<std::string> resumed(const std::vector<std::string> &command, const std::string &resumeTag);

} // namespace ds
#endif
