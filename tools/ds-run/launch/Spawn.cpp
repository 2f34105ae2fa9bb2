#include "tools/ds-run/launch/Spawn.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/launch/ChildProcess.h"
#include "tools/ds-run/launch/RankMeeting.h"
#include "tools/ds-run/launch/RankOutput.h"
#include "tools/ds-run/launch/StarterWatch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace ds {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// After a failure the other ranks have time to find out and to say in which collective they miss the rank; then to end.
constexpr auto reportTime = 2s, endTime = 5s;
// Where a user ends the ranks they may finish a step and write a checkpoint. A second signal does not wait.
constexpr auto interruptTime = 30s;
// How long an error waits for other ranks to say the same, and a failure for one that it follows from: of a rank that
// is killed, sockets are closed before its parent learns of its end.
constexpr auto mergeTime = 300ms;
constexpr auto watchTime = 1s; // between looks at who starts ranks elsewhere

const char *const unmetText = " before it had found the others, which look for it";

// While it lives, signals that end this process, and of processes that ended, are read instead of acted on.
class SignalReader {
public:
  SignalReader() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGINT, SIGTERM, SIGCHLD})
      sigaddset(&set, number);
    struct sigaction action = {};
    if (sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) // as nohup has it
      sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &before);
    pipeAction = std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL); // where it is inherited as ignored, nobody learns how a process ended
    source = Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!source)
      fail(ErrorCode::Io, "signals: ", std::strerror(errno));
  }
  SignalReader(const SignalReader &) = delete;
  SignalReader &operator=(const SignalReader &) = delete;
  ~SignalReader() {
    std::signal(SIGPIPE, pipeAction);
    sigprocmask(SIG_SETMASK, &before, nullptr);
  }

  int descriptor() const { return source.get(); }
  // 0: none is left.
  int next() {
    signalfd_siginfo info;
    return read(source.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
  }

private:
  sigset_t before;
  void (*pipeAction)(int) = SIG_DFL;
  Descriptor source;
};

struct RunningRank {
  unsigned rank = 0;
  pid_t pid = 0; // 0: ended, as `last`
  pid_t last = 0;
  std::unique_ptr<RankOutput> output;
  bool hasEndedWell = false;
  std::string told; // its last report to who has started this process
};

// Each rank takes two or three descriptors, of which a process may have 1,024 unless it asks for more.
void allowDescriptors() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

struct Failure {
  unsigned rank;
  pid_t pid;
  int status;
};

class Job {
public:
  Job(const std::vector<RankProcess> &ranks, const SpawnOptions &options);
  Job(const Job &) = delete;
  Job &operator=(const Job &) = delete;
  ~Job() { killAll(); }
  SpawnResult run();

private:
  void start(const RankProcess &process);
  void wait();
  void readSignals();
  void collectEnded();
  void noteEnd(RunningRank &ended, pid_t pid, int status);
  void noteUnmet();
  void noteUnmetElsewhere();
  void tellStarter();
  void watchStarter();
  bool isAwaited(unsigned rank) const;
  void explain();
  void actOnDeadlines();
  void signalAll(int number);
  void killAll();
  void say(const std::string &text) { writeAll(STDERR_FILENO, text); }
  bool isAnyRunning() const {
    return std::any_of(running.begin(), running.end(), [](const RunningRank &rank) { return rank.pid != 0; });
  }

  const SpawnOptions &options;
  SignalReader signals;
  RankLines lines;
  RankMeeting meeting;
  std::vector<RunningRank> running;
  pid_t group = 0; // that of the first rank
  std::optional<long> killsBefore = outOfMemoryKills();
  SpawnResult result;
  std::optional<Failure> failure; // the first one
  bool isUnmet = false;           // it ended before it had found the others
  std::string starterName;        // "mpirun", "srun"
  std::optional<StarterWatch> watch;
  // When the failure is told, ranks get SIGTERM and SIGKILL, errors that wait are written, and the starter is looked
  // at.
  std::optional<Clock::time_point> explainAt, endAt, killAt, flushAt, watchAt;
};

Job::Job(const std::vector<RankProcess> &ranks, const SpawnOptions &options) : options(options), lines(options.world) {
  if (!options.logDir.empty())
    makeLogDir(options.logDir);
  constexpr size_t manyRanks = 256;
  if (ranks.size() > manyRanks)
    allowDescriptors();
  try {
    for (const RankProcess &rank : ranks)
      start(rank);
    if (options.isStarter) {
      starterName = ranks.front().arguments.front();
      watchAt = Clock::now() + watchTime;
    }
    meeting.closeRankEnd();
  } catch (...) {
    killAll();
    throw;
  }
}

void Job::start(const RankProcess &process) {
  RunningRank rank;
  rank.rank = process.rank;
  std::string log = options.logDir.empty() ? "" : concat(options.logDir, "/rank-", process.rank, ".log");
  rank.output = std::make_unique<RankOutput>(process.rank, log, options.appendsLogs, lines,
                                             options.isStarter ? &meeting : nullptr);
  // A terminal belongs to this process: a rank of another process group that read from it would be stopped.
  bool readsInput = process.rank == 0 && !isatty(STDIN_FILENO);
  Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ChildSpec child;
  child.arguments = process.arguments;
  child.environment = process.environment;
  if (!options.isStarter) { // whoever starts ranks elsewhere hands no descriptors on
    std::string variable = meeting.variable(), name = variable.substr(0, variable.find('=') + 1);
    std::vector<std::string> &all = child.environment;
    all.erase(std::remove_if(all.begin(), all.end(), [&](const std::string &one) { return one.rfind(name, 0) == 0; }),
              all.end());
    all.push_back(variable);
    child.inherited = {meeting.descriptorForRanks()};
  }
  child.input = readsInput ? STDIN_FILENO : nothing.get();
  child.output = rank.output->outputForRank();
  child.error = rank.output->errorForRank();
  if (process.inherited >= 0)
    child.inherited.push_back(process.inherited);
  child.group = group;
  child.deathSignal = options.isStarter ? SIGTERM : SIGKILL;
  rank.pid = rank.last = startChild(child);
  rank.output->closeRankEnds();
  if (group == 0)
    group = rank.pid; // nothing is reaped before all have joined it
  running.push_back(std::move(rank));
}

void Job::wait() {
  std::vector<pollfd> sources = {{signals.descriptor(), POLLIN, 0}, {meeting.source(), POLLIN, 0}};
  for (const RunningRank &rank : running)
    for (int source : {rank.output->outputSource(), rank.output->errorSource()})
      sources.push_back({source, POLLIN, 0}); // poll skips -1
  int timeout = -1;
  for (const auto &deadline : {explainAt, endAt, killAt, flushAt, watchAt})
    if (deadline) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      left = std::max<int64_t>(left, 0);
      timeout = static_cast<int>(timeout < 0 ? left : std::min<int64_t>(left, timeout));
    }
  if (poll(sources.data(), sources.size(), timeout) <= 0)
    return;
  for (size_t i = 0; i < running.size(); ++i) {
    if (sources[2 + 2 * i].revents)
      running[i].output->readOutput();
    if (sources[3 + 2 * i].revents)
      running[i].output->readError();
  }
  if (lines.isWaiting() && !flushAt)
    flushAt = Clock::now() + mergeTime;
}

void Job::readSignals() {
  for (int number = signals.next(); number; number = signals.next()) {
    if (number == SIGCHLD)
      continue;
    auto patience = result.isInterrupted ? 0s : interruptTime;
    killAt = std::min(killAt.value_or(Clock::time_point::max()), Clock::now() + patience);
    if (std::exchange(result.isInterrupted, true))
      continue;
    result.code = 128 + number;
    endAt.reset();
    signalAll(number);
  }
}

void Job::collectEnded() {
  for (RunningRank &rank : running) {
    int status = 0;
    if (rank.pid && waitpid(rank.pid, &status, WNOHANG) == rank.pid)
      noteEnd(rank, std::exchange(rank.pid, 0), status);
  }
}

// As wait tells of a process that has ended with that code.
static int statusOf(int code) { return W_EXITCODE(code, 0); }

void Job::noteEnd(RunningRank &ended, pid_t pid, int status) {
  ended.output->finish();
  ended.hasEndedWell = status == 0 && !result.isInterrupted;
  if (status == 0 || result.isInterrupted)
    return;
  // That others fail may follow from a rank that a signal has ended, but not the other way round.
  bool isCause = failure && explainAt && !WIFSIGNALED(failure->status) && WIFSIGNALED(status);
  // Nor does wrong input, 2, follow from anything: 1 is what a rank ends with that misses another one.
  isCause |= failure && endAt && failure->status == statusOf(1) && status == statusOf(2);
  if (failure && !isCause)
    return;
  failure = {ended.rank, pid, status};
  result.code = exitCodeOf(status);
  if (!explainAt) {
    explainAt = Clock::now() + mergeTime;
    endAt = Clock::now() + reportTime;
  }
}

// Whether others look for a rank that has not found all of them itself.
bool Job::isAwaited(unsigned rank) const {
  return meeting.of(rank) != Meeting::Found &&
         std::any_of(running.begin(), running.end(), [&](const RunningRank &other) {
           return other.pid != 0 && meeting.of(other.rank) == Meeting::Seeking;
         });
}

// A rank may end well without the others, but not where they look for it: they would until their time is up.
void Job::noteUnmet() {
  meeting.read();
  if (options.tellsStarter)
    tellStarter();
  if (result.isInterrupted || (failure && !explainAt))
    return;
  if (options.isStarter)
    return noteUnmetElsewhere();
  auto missed = std::find_if(running.begin(), running.end(),
                             [&](const RunningRank &rank) { return rank.pid == 0 && isAwaited(rank.rank); });
  if (missed == running.end())
    return;
  if (!failure) {
    failure = {missed->rank, missed->last, 0};
    result.code = 1;
    explainAt = endAt = Clock::now() + mergeTime;
  }
  isUnmet |= failure->rank == missed->rank;
}

// mpirun and srun wait for ranks that have found each other, or failed.
void Job::noteUnmetElsewhere() {
  std::optional<RankElsewhere> missed = failure ? std::nullopt : meeting.missedElsewhere();
  if (!missed)
    return;
  failure = {missed->rank, missed->pid, statusOf(1)};
  result.code = 1;
  endAt = Clock::now();
  say(concat("ds-run: error: rank ", missed->rank, " (host ", missed->host, ", pid ", missed->pid,
             ") ended with exit code 0", unmetText, "\n"));
}

// Each change, once.
void Job::tellStarter() {
  for (RunningRank &rank : running) {
    Meeting now = meeting.of(rank.rank);
    RankElsewhere report{rank.rank, rank.last, rank.hasEndedWell && now != Meeting::Found,
                         rank.pid != 0 && now == Meeting::Seeking, options.host};
    if (std::string line = report.line(); line != std::exchange(rank.told, line))
      say(line);
  }
}

// Unless the rank has said it itself.
void Job::explain() {
  explainAt.reset();
  bool isKilled = WIFSIGNALED(failure->status);
  if (options.isStarter || (!isKilled && lines.hasError(failure->rank)))
    return;
  std::string text = concat("ds-run: error: rank ", failure->rank, options.host.empty() ? " (" : " (host ",
                            options.host, options.host.empty() ? "pid " : ", pid ", failure->pid, ") ");
  if (isKilled)
    text += concat("was killed by ", signalText(WTERMSIG(failure->status)));
  else
    text += concat("ended with exit code ", WEXITSTATUS(failure->status), isUnmet ? unmetText : "");
  if (isKilled && WTERMSIG(failure->status) == SIGKILL)
    text += causeOfKill(killsBefore, outOfMemoryKills());
  say(text + "\n");
}

void Job::actOnDeadlines() {
  auto isDue = [](std::optional<Clock::time_point> &deadline) {
    bool isPast = deadline && *deadline <= Clock::now();
    if (isPast)
      deadline.reset();
    return isPast;
  };
  if (explainAt && *explainAt <= Clock::now())
    explain();
  if (isDue(flushAt))
    say(lines.flush());
  if (isDue(endAt)) {
    signalAll(SIGTERM);
    killAt = Clock::now() + endTime;
  }
  if (isDue(killAt))
    signalAll(SIGKILL);
  if (isDue(watchAt))
    watchStarter();
}

void Job::watchStarter() {
  RunningRank &starter = running.front();
  if (starter.pid == 0)
    return;
  watchAt = Clock::now() + watchTime;
  if (!watch)
    watch.emplace(starter.pid);
  if (!watch->isStuck())
    return;
  say(concat("ds-run: error: ", starterName, " waits for itself, with all of its ranks ended: it is killed\n"));
  signalAll(SIGKILL);
}

// A stopped rank acts on no signal but SIGKILL before it goes on. A starter forwards what it gets, and mpirun has
// crashed over that while it ended its ranks, of which it sees to the stopped ones itself.
void Job::signalAll(int number) {
  if (group == 0 || !isAnyRunning())
    return;
  kill(-group, number);
  if (!options.isStarter)
    kill(-group, SIGCONT);
}

void Job::killAll() {
  signalAll(SIGKILL);
  for (RunningRank &rank : running)
    if (rank.pid)
      waitpid(std::exchange(rank.pid, 0), nullptr, 0);
}

SpawnResult Job::run() {
  while (isAnyRunning()) {
    wait();
    readSignals();
    collectEnded();
    noteUnmet();
    actOnDeadlines();
  }
  // What the ranks started themselves, and left.
  kill(-group, SIGKILL);
  for (RunningRank &rank : running)
    rank.output->finish();
  if (explainAt)
    explain();
  say(lines.flush());
  return result;
}

} // namespace

void makeLogDir(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    fail(ErrorCode::Io, "--log-dir: ", folder, ": ", error.message());
}

SpawnResult runRanks(const std::vector<RankProcess> &ranks, const SpawnOptions &options) {
  return Job(ranks, options).run();
}

} // namespace ds
