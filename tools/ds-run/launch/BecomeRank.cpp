#include "tools/ds-run/launch/BecomeRank.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/launch/Environment.h"
#include "tools/ds-run/launch/RankMeeting.h"
#include "tools/ds-run/launch/RunPlan.h"
#include "tools/ds-run/launch/Spawn.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ds {
namespace {

void checkStarted(const StartedRank &started, const LaunchOptions &options, const Arguments &arguments) {
  for (const auto &[name, isGiven] : startingOptions(options, arguments))
    if (isGiven && (name != "--exec" || started.starter == "ds-run"))
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
int runOwnRank(const StartedRank &started, const std::string &logDir, bool tellsStarter, const Arguments &arguments) {
  SpawnOptions spawn;
  spawn.host = hostName();
  spawn.tellsStarter = tellsStarter;
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

} // namespace

std::optional<int> becomeRank(const StartedRank &started, const LaunchOptions &options, const Arguments &arguments) {
  checkStarted(started, options, arguments);
  checkProgram(arguments);
  if (options.timeout)
    setenv("DS_TIMEOUT", concat(*options.timeout).c_str(), 1);
  if (started.starter == "ds-run")
    return std::nullopt;
  setenv("DS_NUM_THREADS", std::to_string(std::max(1u, processorCount() / started.onHost)).c_str(), /*overwrite=*/0);
  const char *logDir = std::getenv("DS_LOG_DIR"), *starter = std::getenv("DS_STARTER");
  bool tellsStarter = starter && starter == std::string(RankElsewhere::variable);
  unsetenv("DS_STARTER"); // it is about this process
  if (arguments.hasProgram || (logDir && *logDir))
    return runOwnRank(started, logDir ? logDir : "", tellsStarter, arguments);
  if (started.rank != 0 && !std::freopen("/dev/null", "w", stdout))
    fail(ErrorCode::Io, "/dev/null: ", std::strerror(errno));
  return std::nullopt;
}

} // namespace ds
