#include "tools/ds-run/launch/Launch.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/launch/BecomeRank.h"
#include "tools/ds-run/launch/LaunchPlan.h"
#include "tools/ds-run/launch/RunPlan.h"
#include "tools/ds-run/launch/StartCommand.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace ds {
namespace {

bool asksForRanks(const LaunchOptions &options, const Arguments &arguments) {
  auto starting = startingOptions(options, arguments);
  return options.ranks || !options.transport.empty() ||
         std::any_of(starting.begin(), starting.end(), [](const auto &option) { return option.second; });
}

void checkCommand(const LaunchOptions &options, const Arguments &arguments, const LaunchedCommand &command) {
  checkProgram(arguments);
  bool runsOnRanks =
      command.name.empty() || command.name == "train" || command.name == "eval" || command.name == "probe";
  if (!runsOnRanks)
    fail(ErrorCode::InvalidArgument, "ds-run ", command.name,
         " is one process: expected no options of ranks, which are of "
         "ds-run PKG, train, eval and probe");
  bool resumes = arguments.hasProgram || (command.name == "train" && !command.checkpoint.empty());
  if (options.restarts && !resumes)
    fail(ErrorCode::InvalidArgument,
         "--restarts goes on from checkpoints: expected ds-run train with --checkpoint=DIR");
  if (options.transport != "threads")
    return;
  if (arguments.hasProgram || !command.name.empty())
    fail(ErrorCode::InvalidArgument, "--transport=threads: expected ds-run PKG, found ",
         arguments.hasProgram ? "--exec" : command.name);
  for (const auto &[name, isGiven] : startingOptions(options, arguments))
    if (isGiven && (name == "--env-file" || name == "--log-dir" || name == "--restarts"))
      fail(ErrorCode::InvalidArgument, name, ": is for ranks that are processes, found --transport=threads");
}

std::vector<std::string> assignments(const Variables &variables) {
  std::vector<std::string> words;
  for (const auto &[name, value] : variables)
    words.push_back(concat(name, "=", value));
  return words;
}

void printPlan(const LaunchPlan &plan, const LaunchOptions &options, const std::vector<std::string> &program) {
  for (size_t rank = 0; rank < plan.places.size(); ++rank)
    std::printf("rank %zu host %s slot %u\n", rank, plan.places[rank].host.c_str(), plan.places[rank].slot);
  std::vector<std::string> words;
  if (plan.launcher != Launcher::Local) {
    Variables variables;
    std::vector<std::string> command = starterCommand(plan, options, program, variables);
    words = assignments(variables);
    words.insert(words.end(), command.begin(), command.end());
  } else {
    if (plan.transport != "threads") {
      Variables variables = variablesOf(plan, 0, options);
      variables.set("DS_RENDEZVOUS", plan.transport == "shm" ? "fd:K" : "fd:K@127.0.0.1:PORT");
      words = assignments(variables);
    }
    words.insert(words.end(), program.begin(), program.end());
  }
  std::printf("%s\n", shellText(words).c_str());
}

// A descriptor of a rank must not take the place of a standard one that is closed. What is written there still fails.
void fillStandardDescriptors() {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
      fail(ErrorCode::Io, "/dev/null: ", std::strerror(errno));
}

} // namespace

std::optional<int> launch(const LaunchOptions &options, const Arguments &arguments, const LaunchedCommand &command) {
  if (asksForRanks(options, arguments))
    fillStandardDescriptors();
  if (std::optional<StartedRank> started = startedRank())
    return becomeRank(*started, options, arguments);
  if (!asksForRanks(options, arguments))
    return std::nullopt;
  checkCommand(options, arguments, command);
  LaunchPlan plan = planLaunch(options);
  constexpr unsigned mostThreads = 64;
  if (plan.transport == "threads" && plan.ranks > mostThreads)
    fail(ErrorCode::InvalidArgument, "--ranks: found ", plan.ranks, ", expected 1 to ", mostThreads,
         " with --transport=threads");
  if (options.isDryRun) {
    printPlan(plan, options, programOf(arguments, plan.launcher == Launcher::Local));
    return 0;
  }
  if (plan.transport == "threads")
    return std::nullopt;
  return runPlan(plan, options, arguments, command);
}

unsigned threadRanks(const LaunchOptions &options) {
  return options.transport == "threads" && !startedRank() ? planLaunch(options).ranks : 1;
}

} // namespace ds
