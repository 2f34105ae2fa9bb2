// What follows from the options of ranks: the hosts, who starts the ranks, how they talk, and their environment.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_LAUNCHPLAN_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_LAUNCHPLAN_H

#include "tools/ds-run/launch/Environment.h"
#include "tools/ds-run/launch/LaunchOptions.h"
#include "tools/ds-run/launch/Ranks.h"

#include <functional>
#include <string>
#include <vector>

namespace ds {

enum class Launcher { Local, OpenMpi, Slurm };

struct LaunchPlan {
  Launcher launcher = Launcher::Local;
  std::string transport;         // shm, tcp, mpi or threads
  std::vector<Host> hosts;       // empty: Slurm chooses
  std::vector<RankPlace> places; // of each rank; empty: Slurm chooses
  unsigned ranks = 0;
  Variables variables; // of --env-file or .deepspeed_env
};

// Throws Error where options contradict each other, or the hosts.
LaunchPlan planLaunch(const LaunchOptions &options);

// The same on what the hostfile of now has left of its hosts and slots: on as many of them as `fittingRanks` says, if
// it says anything. Throws Error where nothing is left.
LaunchPlan planAgain(const LaunchPlan &first, const LaunchOptions &options,
                     const std::function<unsigned(unsigned)> &fittingRanks);

// Of a rank that runs here: what the plan has, and DS_RANK and its kin but for DS_RENDEZVOUS.
Variables variablesOf(const LaunchPlan &plan, unsigned rank, const LaunchOptions &options);

// The program that starts ranks elsewhere, with its arguments; `variables` becomes what its environment gets on top.
std::vector<std::string> starterCommand(const LaunchPlan &plan, const LaunchOptions &options,
                                        const std::vector<std::string> &program, Variables &variables);

} // namespace ds
#endif
