#include "tools/ds-run/launch/Launch.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "tools/ds-run/launch/LaunchPlan.h"
#include "tools/ds-run/launch/Rendezvous.h"
#include "tools/ds-run/launch/Spawn.h"
#include "tools/ds-run/launch/StartCommand.h"
#include "tools/ds-run/launch/TextLines.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace ds {
namespace {

constexpr int usageCode = 2;

// Options that start ranks, by name, and whether they are given. --timeout is of use without.
std::vector<std::pair<const char *, bool>> startingOptions(const LaunchOptions &options, const Arguments &arguments) {
  const HostFilter &filter = options.filter;
  return {{"--hostfile", !options.hostfile.empty()}, {"--include", !filter.include.empty()},
          {"--exclude", !filter.exclude.empty()},    {"--num_nodes", filter.nodes.has_value()},
          {"--num_gpus", filter.slots.has_value()},  {"--launcher", !options.launcher.empty()},
          {"--env-file", !options.envFile.empty()},  {"--log-dir", !options.logDir.empty()},
          {"--restarts", options.restarts > 0},      {"--dry-run", options.isDryRun},
          {"--exec", arguments.hasProgram}};
}

bool asksForRanks(const LaunchOptions &options, const Arguments &arguments) {
  auto starting = startingOptions(options, arguments);
  return options.ranks || !options.transport.empty() ||
         std::any_of(starting.begin(), starting.end(), [](const auto &option) { return option.second; });
}

void checkCommand(const LaunchOptions &options, const Arguments &arguments, const LaunchedCommand &command) {
  if (arguments.hasProgram && arguments.program.empty())
    fail(ErrorCode::InvalidArgument, "--exec: expected a command behind it, found none");
  if (arguments.hasProgram && !arguments.command.empty())
    fail(ErrorCode::InvalidArgument, "--exec: expected only options of ranks before it, found '", arguments.command[0],
         "'");
  bool runsOnRanks = command.name.empty() || command.name == "train" || command.name == "eval";
  if (!runsOnRanks)
    fail(ErrorCode::InvalidArgument, "ds-run ", command.name,
         " is one process: expected no options of ranks, which are of "
         "ds-run PKG, train and eval");
  bool resumes = arguments.hasProgram || (command.name == "train" && !command.checkpoint.empty());
  if (options.restarts && !resumes)
    fail(ErrorCode::InvalidArgument,
         "--restarts goes on from checkpoints: expected ds-run train with --checkpoint=DIR");
  if (options.transport != "threads")
    return;
  if (arguments.hasProgram || !command.name.empty())
    fail(ErrorCode::InvalidArgument, "--transport=threads: expected ds-run PKG, found ",
         arguments.hasProgram ? "--exec" : command.name);
  for (auto [name, isGiven] : startingOptions(options, arguments))
    if (isGiven &&
        (!std::strcmp(name, "--env-file") || !std::strcmp(name, "--log-dir") || !std::strcmp(name, "--restarts")))
      fail(ErrorCode::InvalidArgument, name, ": is for ranks that are processes, found --transport=threads");
}

std::string ownPath() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    fail(ErrorCode::Io, "/proc/self/exe: ", error.message());
  return path.string();
}

// What each rank is: the same command without the options of ranks, or the program of --exec. Ranks of mpirun and srun
// run that by way of ds-run, for the sake of their output.
std::vector<std::string> programOf(const Arguments &arguments, bool isHere) {
  std::vector<std::string> program;
  if (!isHere || !arguments.hasProgram)
    program.push_back(ownPath());
  if (!isHere && arguments.hasProgram)
    program.emplace_back("--exec");
  const std::vector<std::string> &words = arguments.hasProgram ? arguments.program : arguments.command;
  program.insert(program.end(), words.begin(), words.end());
  return program;
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

SpawnResult runHere(const LaunchPlan &plan, const LaunchOptions &options, const std::vector<std::string> &program,
                    const SpawnOptions &spawn) {
  Rendezvous rendezvous(plan.transport, plan.ranks);
  std::vector<RankProcess> ranks;
  for (unsigned rank = 0; rank < plan.ranks; ++rank) {
    Variables variables = variablesOf(plan, rank, options);
    variables.set("DS_RENDEZVOUS", rendezvous.textFor(rank));
    ranks.push_back({rank, program, environmentWith(variables), rendezvous.descriptorFor(rank)});
  }
  return runRanks(ranks, spawn);
}

// This process becomes the one that starts the ranks, if nobody is needed to start them again.
SpawnResult runElsewhere(const LaunchPlan &plan, const LaunchOptions &options, const std::vector<std::string> &program,
                         SpawnOptions spawn) {
  Variables variables;
  std::vector<std::string> command = starterCommand(plan, options, program, variables);
  if (!isInstalled(command[0]))
    fail(ErrorCode::Io, "PATH has no ", command[0], ", which --launcher=",
         plan.launcher == Launcher::Slurm ? "slurm needs" : "openmpi needs (Debian: openmpi-bin)");
  if (!options.logDir.empty())
    std::filesystem::create_directories(options.logDir); // its faults are told by the ranks, who know their machine
  if (options.restarts == 0) {
    for (const auto &[name, value] : variables)
      setenv(name.c_str(), value.c_str(), 1);
    std::vector<char *> words;
    for (std::string &word : command)
      words.push_back(word.data());
    words.push_back(nullptr);
    std::fflush(nullptr);
    execvp(words[0], words.data());
    fail(ErrorCode::Io, "cannot start ", command[0], ": ", std::strerror(errno));
  }
  spawn.isStarter = true;
  spawn.world = 1;
  spawn.logDir.clear();
  return runRanks({{0, command, environmentWith(variables), -1}}, spawn);
}

std::string latestOf(const std::string &checkpoint) {
  std::string path = checkpoint + "/latest";
  if (checkpoint.empty() || !isThere(path))
    return "";
  std::string tag = readHandWritten(path);
  std::vector<std::string_view> words = wordsOf(tag);
  return words.empty() ? "" : std::string(words[0]);
}

// A descriptor of a rank must not take the place of a standard one that is closed. What is written there still fails.
void fillStandardDescriptors() {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
      fail(ErrorCode::Io, "/dev/null: ", std::strerror(errno));
}

int runWithRestarts(const LaunchPlan &first, const LaunchOptions &options, const Arguments &arguments,
                    const LaunchedCommand &command) {
  LaunchPlan plan = first;
  Arguments now = arguments;
  for (unsigned restart = 0;; ++restart) {
    SpawnOptions spawn;
    spawn.logDir = options.logDir;
    spawn.appendsLogs = restart > 0;
    spawn.world = plan.ranks;
    bool isHere = plan.launcher == Launcher::Local;
    std::vector<std::string> program = programOf(now, isHere);
    SpawnResult result = isHere ? runHere(plan, options, program, spawn) : runElsewhere(plan, options, program, spawn);
    // What the command line or a file says wrongly stays wrong.
    if (result.code == 0 || result.code == usageCode || result.isInterrupted || restart == options.restarts)
      return result.code;
    plan = planAgain(plan, options);
    plan.variables.set("DS_RESTART", std::to_string(restart + 1)); // for programs of --exec, and for logs
    std::string tag = latestOf(command.checkpoint);
    if (!tag.empty())
      now.command = resumed(arguments.command, command.resumeTag);
    std::string from = tag.empty() ? "the start" : command.checkpoint + "/" + tag;
    std::fprintf(stderr, "ds-run: restart %u of %u: %u %s, %s\n", restart + 1, options.restarts, plan.ranks,
                 plan.ranks == 1 ? "rank" : "ranks",
                 arguments.hasProgram ? "the same command" : ("from " + from).c_str());
  }
}

void checkStarted(const StartedRank &started, const LaunchOptions &options, const Arguments &arguments) {
  for (auto [name, isGiven] : startingOptions(options, arguments))
    if (isGiven && (std::strcmp(name, "--exec") != 0 || started.starter == "ds-run"))
      fail(ErrorCode::InvalidArgument, name, ": ", started.starter, " has started the ranks already, this is rank ",
           started.rank, " of ", started.world);
  if (options.ranks && *options.ranks != started.world)
    fail(ErrorCode::InvalidArgument, "--ranks: found ", *options.ranks, ", expected ", started.world, ", as many as ",
         started.starter, " has started");
  const char *given = std::getenv("DS_TRANSPORT");
  std::string transport = given ? given : started.starter == "ds-run" ? "shm" : "mpi";
  if (!options.transport.empty() && options.transport != transport)
    fail(ErrorCode::InvalidArgument, "--transport: found ", options.transport, ", expected ", transport, ", for which ",
         started.starter, " has started the ranks");
}

// The rank as a process of this one, which writes its log, drops the output of all but rank 0 and says whose errors
// are.
int runOwnRank(const StartedRank &started, const std::string &logDir, const Arguments &arguments) {
  SpawnOptions spawn;
  spawn.logDir = logDir;
  spawn.appendsLogs = std::getenv("DS_RESTART") != nullptr;
  spawn.world = started.world;
  Variables variables;
  variables.set("DS_RANK", std::to_string(started.rank));
  variables.set("DS_WORLD", std::to_string(started.world));
  variables.set("DS_LOCAL_RANK", std::to_string(started.localRank));
  variables.set("DS_TRANSPORT", "mpi");
  return runRanks({{started.rank, programOf(arguments, /*isHere=*/true), environmentWith(variables), -1}}, spawn).code;
}

// A rank of mpirun or srun does here what runHere() does for its own: output of rank 0 only, logs, a share of threads.
std::optional<int> becomeRank(const StartedRank &started, const LaunchOptions &options, const Arguments &arguments) {
  checkStarted(started, options, arguments);
  if (arguments.hasProgram)
    checkCommand(options, arguments, {});
  if (options.timeout)
    setenv("DS_TIMEOUT", concat(*options.timeout).c_str(), 1);
  if (started.starter == "ds-run")
    return std::nullopt;
  setenv("DS_NUM_THREADS", std::to_string(std::max(1u, processorCount() / started.onHost)).c_str(), /*overwrite=*/0);
  const char *logDir = std::getenv("DS_LOG_DIR");
  if (arguments.hasProgram || (logDir && *logDir))
    return runOwnRank(started, logDir ? logDir : "", arguments);
  if (started.rank != 0 && !std::freopen("/dev/null", "w", stdout))
    fail(ErrorCode::Io, "/dev/null: ", std::strerror(errno));
  return std::nullopt;
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
  return runWithRestarts(plan, options, arguments, command);
}

unsigned threadRanks(const LaunchOptions &options) {
  return options.transport == "threads" && !startedRank() ? planLaunch(options).ranks : 1;
}

std::vector<std::string> resumed(const std::vector<std::string> &command, const std::string &resumeTag) {
  std::vector<std::string> words;
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "--resume") {
      if (i + 1 < command.size() && !resumeTag.empty() && command[i + 1] == resumeTag)
        ++i;
    } else if (command[i].rfind("--resume=", 0) != 0) {
      words.push_back(command[i]);
    }
  }
  words.emplace_back("--resume"); // last: it would take a word behind it for its value
  return words;
}

} // namespace ds
