#include "tools/ds-run/launch/LaunchOptions.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/Choices.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>

namespace ds {
namespace {

const char *const groupName = "Ranks (docs/ranks.md)";

std::string someText(const std::string &text) { return text.empty() ? "expected a name, found ''" : ""; }

// CLI11 takes -1 for a large unsigned number.
CLI::Validator integerFrom(long long least, long long most) {
  return CLI::Validator(
      [=](std::string &text) {
        char *end = nullptr;
        errno = 0;
        long long number = std::strtoll(text.c_str(), &end, 10);
        bool isLegal = !text.empty() && !*end && !errno && number >= least && number <= most;
        return isLegal ? std::string()
                       : "expected an integer of " + std::to_string(least) + " to " + std::to_string(most) +
                             ", found '" + text + "'";
      },
      "");
}

// Whether a word is an option of ranks, and whether its value is the word behind it.
struct Match {
  bool isOption = false, takesNext = false;
};

Match matchOption(const std::string &word, const CLI::App &app) {
  for (const CLI::Option *option : app.get_options()) {
    if (option->get_group() != groupName)
      continue;
    bool takesValue = option->get_items_expected_max() > 0;
    for (const std::string &name : option->get_lnames())
      if (std::string text = "--" + name; word == text)
        return {true, takesValue};
      else if (word.rfind(text + "=", 0) == 0)
        return {true, false};
    for (const std::string &name : option->get_snames())
      if (std::string text = "-" + name; word.rfind(text, 0) == 0)
        return {true, takesValue && word == text};
  }
  return {};
}

} // namespace

void addLaunchOptions(CLI::App &app, LaunchOptions &options) {
  auto add = [&](const char *names, auto &value, const char *help) {
    return app.add_option(names, value, help)->group(groupName);
  };
  add("-n,--ranks", options.ranks, "ranks, each a process; {rank} in file names is the rank's number")
      ->type_name("N")
      ->check(integerFrom(1, mostRanks));
  oneOf(add("--transport", options.transport,
            "shm, tcp, mpi, or threads of one process (shm here, mpi between machines)"),
        {"shm", "tcp", "mpi", "threads"});
  add("--timeout", options.timeout, "seconds that a collective waits for a rank that is late (30)")
      ->type_name("SECONDS")
      ->check([](const std::string &text) {
        char *end = nullptr;
        double seconds = std::strtod(text.c_str(), &end);
        bool isLegal = !text.empty() && !*end && seconds >= 0.001 && seconds <= 1e6; // NaN is not
        return isLegal ? std::string() : "expected seconds of 0.001 to 1e6, found '" + text + "'";
      });
  add("-H,--hostfile", options.hostfile, "lines of NAME slots=K (/job/hostfile, else this machine)")
      ->type_name("FILE")
      ->check(someText);
  add("-i,--include", options.filter.include, "use these hosts and slots only: NODE[:SLOT,SLOT]@NODE...")
      ->type_name("HOSTS")
      ->check(someText);
  add("-e,--exclude", options.filter.exclude, "use all but these")->type_name("HOSTS")->check(someText);
  add("--num_nodes", options.filter.nodes, "use the first hosts")->type_name("N")->check(integerFrom(1, 1000000));
  add("--num_gpus", options.filter.slots, "use the first slots of each host")
      ->type_name("N")
      ->check(integerFrom(1, mostRanks));
  oneOf(add("--launcher", options.launcher, "local, openmpi or slurm (local, or openmpi for other machines)"),
        {"local", "openmpi", "slurm"});
  add("--env-file", options.envFile, "lines of NAME=VALUE for the ranks (.deepspeed_env of home, then of this folder)")
      ->type_name("FILE")
      ->check(someText);
  add("--log-dir", options.logDir, "write the output of each rank to DIR/rank-R.log")
      ->type_name("DIR")
      ->check(someText);
  app.add_flag("--dry-run", options.isDryRun, "print where each rank would run, and the command")->group(groupName);
  add("--restarts", options.restarts, "after a failure, resume train from its last checkpoint, so many times (0)")
      ->type_name("N")
      ->check(integerFrom(0, 1000000));
  // Never parsed: what stands behind it is taken off before.
  app.add_flag("--exec", "CMD...: run this program as the ranks, instead of ds-run; must be the last")
      ->group(groupName);
}

std::vector<std::string> Arguments::parsed() const {
  std::vector<std::string> words = launch;
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Arguments splitArguments(int argc, char **argv, const CLI::App &app) {
  Arguments arguments;
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--exec") {
      arguments.hasProgram = true;
      arguments.program.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (words[i] == "--") {
      arguments.command.insert(arguments.command.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    Match match = matchOption(words[i], app);
    auto &side = match.isOption ? arguments.launch : arguments.command;
    side.push_back(words[i]);
    if (match.takesNext && i + 1 < words.size())
      side.push_back(words[++i]);
  }
  return arguments;
}

std::vector<std::pair<std::string, bool>> startingOptions(const LaunchOptions &options, const Arguments &arguments) {
  const HostFilter &filter = options.filter;
  return {{"--hostfile", !options.hostfile.empty()}, {"--include", !filter.include.empty()},
          {"--exclude", !filter.exclude.empty()},    {"--num_nodes", filter.nodes.has_value()},
          {"--num_gpus", filter.slots.has_value()},  {"--launcher", !options.launcher.empty()},
          {"--env-file", !options.envFile.empty()},  {"--log-dir", !options.logDir.empty()},
          {"--restarts", options.restarts > 0},      {"--dry-run", options.isDryRun},
          {"--exec", arguments.hasProgram}};
}

void checkProgram(const Arguments &arguments) {
  if (arguments.hasProgram && arguments.program.empty())
    fail(ErrorCode::InvalidArgument, "--exec: expected a command behind it, found none");
  if (arguments.hasProgram && !arguments.command.empty())
    fail(ErrorCode::InvalidArgument, "--exec: expected only options of ranks before it, found '", arguments.command[0],
         "'");
}

} // namespace ds
