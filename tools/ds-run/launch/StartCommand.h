// The command lines that start ranks elsewhere, and how a command is shown.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_STARTCOMMAND_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_STARTCOMMAND_H

#include "tools/ds-run/launch/Hostfile.h"

#include <string>
#include <vector>

namespace ds {

// mpirun for a program and its arguments; `exported` are names of variables that mpirun's environment has.
std::vector<std::string> mpirunCommand(const std::vector<Host> &hosts, const std::vector<std::string> &exported,
                                       const std::vector<std::string> &program);

// srun, which exports its environment by itself. Without hosts, Slurm places `ranks` ranks on `nodes` nodes (0: as it
// likes).
std::vector<std::string> srunCommand(const std::vector<Host> &hosts, unsigned ranks, unsigned nodes,
                                     const std::vector<std::string> &program);

// Whether PATH has a program of this name.
bool isInstalled(const std::string &program);

// As a shell would read it back. A word NAME=VALUE in front stays an assignment.
std::string shellText(const std::vector<std::string> &words);

} // namespace ds
#endif
