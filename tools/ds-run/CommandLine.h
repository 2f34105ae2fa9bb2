// ds-run's commands and their options, but for those of training and of ranks.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_COMMANDLINE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_COMMANDLINE_H

#include "tools/ds-run/Options.h"

#include "tools/commandline/Description.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace ds {

// Of calling a package, which has no name of its own, and of compare, bench, inspect, profile, gradients and probe.
void addCommands(CLI::App &app, Options &options);

// What is wrong with words that name no option or command, with what was meant, if it can be told; nothing otherwise.
std::optional<std::string> wrongName(const CLI::App &app, const std::vector<std::string> &words);

// All commands and options of the app.
commandline::ProgramText describe(const CLI::App &app, const std::string &version);

} // namespace ds
#endif
