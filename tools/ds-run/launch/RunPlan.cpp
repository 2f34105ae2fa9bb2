#include "tools/ds-run/launch/RunPlan.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "tools/ds-run/Messages.h"
#include "tools/ds-run/launch/RankMeeting.h"
#include "tools/ds-run/launch/Rendezvous.h"
#include "tools/ds-run/launch/Spawn.h"
#include "tools/ds-run/launch/StartCommand.h"
#include "tools/ds-run/launch/TextLines.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace ds {
namespace {

constexpr int usageCode = 2;

std::string ownPath() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    fail(ErrorCode::Io, "/proc/self/exe: ", error.message());
  return path.string();
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

// This process stays, to learn of a rank that others look for in vain, and to start ranks again.
SpawnResult runElsewhere(LaunchPlan plan, const LaunchOptions &options, const std::vector<std::string> &program,
                         SpawnOptions spawn) {
  Variables variables;
  plan.variables.set("DS_STARTER", RankElsewhere::variable);
  std::vector<std::string> command = starterCommand(plan, options, program, variables);
  if (!isInstalled(command[0]))
    fail(ErrorCode::Io, "PATH has no ", command[0], ", which --launcher=",
         plan.launcher == Launcher::Slurm ? "slurm needs" : "openmpi needs (Debian: openmpi-bin)");
  if (!options.logDir.empty())
    makeLogDir(options.logDir);
  spawn.isStarter = true;
  spawn.world = 1;
  spawn.logDir.clear();
  return runRanks({{0, command, environmentWith(variables), -1}}, spawn);
}

// Which checkpoint is the newest one of a folder, and when it became that.
struct Latest {
  std::string tag; // empty: there is none
  std::filesystem::file_time_type since;
  bool operator==(const Latest &other) const { return tag == other.tag && since == other.since; }
};

Latest latestOf(const std::string &checkpoints) {
  std::string path = checkpoints + "/latest";
  if (checkpoints.empty() || !isThere(path))
    return {};
  std::string text = readHandWritten(path);
  std::vector<std::string_view> words = wordsOf(text);
  std::error_code error;
  auto since = std::filesystem::last_write_time(path, error);
  return {words.empty() ? "" : std::string(words[0]), since};
}

} // namespace

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

int runPlan(const LaunchPlan &first, const LaunchOptions &options, const Arguments &arguments,
            const LaunchedCommand &command) {
  LaunchPlan plan = first;
  Arguments now = arguments;
  Latest before = latestOf(command.checkpoint);
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
    plan = planAgain(plan, options, command.fittingRanks);
    plan.variables.set("DS_RESTART", std::to_string(restart + 1)); // for programs of --exec, and for logs
    // A checkpoint that was there before may be of another training: the command says whether to go on from it.
    Latest latest = latestOf(command.checkpoint);
    bool isOwn = !latest.tag.empty() && !(latest == before);
    if (isOwn)
      now.command = resumed(arguments.command, command.resumeTag);
    std::string from = arguments.hasProgram ? "the same command"
                       : isOwn              ? concat("from ", command.checkpoint, "/", latest.tag)
                                            : "from where it started";
    printMessage("restart ", restart + 1, " of ", options.restarts, ": ", plan.ranks,
                 plan.ranks == 1 ? " rank, " : " ranks, ", from);
  }
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
