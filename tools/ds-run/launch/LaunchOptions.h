// How many ranks the command line asks for, where, and by what means; and which of its words say so.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_LAUNCHOPTIONS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_LAUNCHOPTIONS_H

#include "tools/ds-run/launch/Hostfile.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace ds {

struct LaunchOptions {
  std::optional<unsigned> ranks;
  std::string transport, launcher; // empty: what fits the hosts
  std::string hostfile, envFile, logDir;
  HostFilter filter;
  unsigned restarts = 0;
  bool isDryRun = false;
  std::optional<double> timeout; // seconds
};

// The options of ranks, as a group of their own.
void addLaunchOptions(CLI::App &app, LaunchOptions &options);

struct Arguments {
  std::vector<std::string> launch;  // options of ranks, with their values
  std::vector<std::string> command; // all others: what each rank is started with
  std::vector<std::string> program; // what stands behind --exec
  bool hasProgram = false;

  std::vector<std::string> parsed() const; // as CLI11 takes them: options of ranks first
};

// Options of ranks may stand anywhere before --exec or "--". `app` has them.
Arguments splitArguments(int argc, char **argv, const CLI::App &app);

// Options that start ranks, by name, and whether they are given; --ranks, --transport and --timeout are not among them,
// which a rank may have, too.
std::vector<std::pair<std::string, bool>> startingOptions(const LaunchOptions &options, const Arguments &arguments);

// Throws Error(InvalidArgument) where --exec stands without a program, or behind another command.
void checkProgram(const Arguments &arguments);

} // namespace ds
#endif
