// ds-run PKG: one call of an entry, on one rank or on several ranks as threads.
#include "tools/ds-run/Inputs.h"
#include "tools/ds-run/Options.h"
#include "tools/ds-run/Values.h"
#include "tools/ds-run/launch/JoinRanks.h"
#include "tools/ds-run/launch/Ranks.h"

#include "runtime/comm/threads/ThreadRanks.h"
#include "runtime/core/Checksums.h"
#include "runtime/core/Error.h"
#include "runtime/core/Session.h"
#include "runtime/core/Text.h"
#include "runtime/io/Npz.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace ds {
namespace {

std::string elementText(const Tensor &tensor, size_t index) {
  if (isInteger(tensor.getType()))
    return std::to_string(loadInteger(tensor.getType(), tensor.data(), index));
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", loadDouble(tensor.getType(), tensor.data(), index));
  return text;
}

void printOutput(const std::string &name, const Tensor &tensor) {
  constexpr int64_t shown = 6;
  std::string values;
  for (int64_t i = 0; i < std::min(tensor.count(), shown); ++i)
    values += " " + elementText(tensor, static_cast<size_t>(i));
  if (tensor.count() > shown)
    values += " ...";
  std::printf("%s: %s %s sha256:%s%s\n", oneLine(name).c_str(), typeName(tensor.getType()),
              listText(tensor.getShape()).c_str(), sha256Hex(tensor.data(), tensor.bytes()).substr(0, 16).c_str(),
              values.c_str());
}

// All that a rank does; its outputs, and values behind them, are printed by the caller, in rank order.
std::vector<NamedTensor> runRank(const std::shared_ptr<const Package> &package, const Options &options,
                                 std::shared_ptr<Communicator> communicator, unsigned rank) {
  SessionOptions sessionOptions;
  sessionOptions.threads =
      options.threads ? options.threads : std::max(1u, ThreadPool::defaultThreads() / options.ranks);
  sessionOptions.communicator = std::move(communicator);
  Session session(package, sessionOptions);
  size_t index = package->entryIndex(options.entry);
  const EntryInfo &entry = session.entry(index);
  Pins pins = parsePins(options.dims);
  std::vector<std::string> madeUp;
  std::vector<Tensor> inputs = gatherInputs(entry, options, pins, rank, &madeUp), outputs;
  restoreStates(session, options, rank);
  std::vector<TensorView> views = viewsOf(inputs);
  // Guarded entries keep values of their own.
  index = options.values.empty() ? index : session.choose(index, views, pins);
  std::set<std::string> wanted = wantedValues(session.entry(index), options);
  BlockRecorder recorder(wanted);
  session.run(index, views, pins, outputs, wanted.empty() ? nullptr : &recorder);
  if (rank == 0) // once
    noteRandomInputs(madeUp, options);
  if (!options.stateOut.empty())
    session.withStates([&](StateStore &states) { writeNpz(forRank(options.stateOut, rank), states.views()); });
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.push_back({entry.outputs[i].name, std::move(outputs[i])});
  for (NamedTensor &value : recorder.blocks)
    if (std::none_of(named.begin(), named.end(), [&](const NamedTensor &item) { return item.name == value.name; }))
      named.push_back(std::move(value));
  if (!options.output.empty()) {
    writeNpz(forRank(options.output, rank), named);
    named.clear();
  }
  return named;
}

// A rank that another rank let down says so with this code; the reason lies with the other.
bool isConsequence(const std::exception_ptr &failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error &error) {
    return error.getCode() == ErrorCode::Collective;
  } catch (...) {
    return false;
  }
}

// What the threads of the ranks share; a rank that never ends keeps it.
struct RankRun {
  std::shared_ptr<const Package> package;
  Options options;
  std::shared_ptr<ThreadRanks> group;
  std::vector<std::vector<NamedTensor>> outputs;
  std::vector<std::exception_ptr> failures;
  std::mutex mutex;
  std::condition_variable changed;
  unsigned finished = 0;
  bool isAnyFailed = false;
};

void runRankThread(const std::shared_ptr<RankRun> &run, unsigned rank) {
  std::exception_ptr failure;
  {
    std::shared_ptr<Communicator> communicator = run->group->join(rank);
    try {
      run->outputs[rank] = runRank(run->package, run->options, communicator, rank);
    } catch (const std::exception &error) {
      failure = std::current_exception();
      communicator->leave(error.what());
    }
  }
  std::lock_guard<std::mutex> lock(run->mutex);
  run->isAnyFailed |= failure != nullptr;
  run->failures[rank] = std::move(failure);
  ++run->finished;
  run->changed.notify_all();
}

// After a failure the other ranks get the time of a collective to end; one that hangs in its own code is left behind.
std::vector<std::vector<NamedTensor>> runRanks(const std::shared_ptr<const Package> &package, const Options &options) {
  auto timeout = std::chrono::milliseconds(static_cast<int64_t>(options.timeout * 1000));
  auto run = std::make_shared<RankRun>();
  run->package = package;
  run->options = options;
  run->group = std::make_shared<ThreadRanks>(options.ranks, timeout);
  run->outputs.resize(options.ranks);
  run->failures.resize(options.ranks);
  for (unsigned rank = 0; rank < options.ranks; ++rank)
    std::thread(runRankThread, run, rank).detach();

  std::unique_lock<std::mutex> lock(run->mutex);
  auto isDone = [&] { return run->finished == options.ranks; };
  run->changed.wait(lock, [&] { return isDone() || run->isAnyFailed; });
  run->changed.wait_for(lock, timeout, isDone);
  // Failures are taken out: the caller reads what they say while the threads that had them may still be ending.
  auto failures = std::exchange(run->failures, std::vector<std::exception_ptr>(options.ranks));
  for (bool orConsequences : {false, true})
    for (const std::exception_ptr &failure : failures)
      if (failure && (orConsequences || !isConsequence(failure)))
        std::rethrow_exception(failure);
  return std::move(run->outputs);
}

// The one rank that this process is; others are other processes, and learn why it fails.
std::vector<NamedTensor> runOwnRank(const std::shared_ptr<const Package> &package, const Options &options,
                                    unsigned rank) {
  std::shared_ptr<Communicator> communicator = joinRanks();
  try {
    return runRank(package, options, communicator, rank);
  } catch (const std::exception &error) {
    if (communicator)
      communicator->leave(error.what());
    throw;
  }
}

} // namespace

int runCommand(const Options &options) {
  StartedRank self = startedRank().value_or(StartedRank{"", 0, options.ranks});
  for (const std::string *path : {&options.output, &options.stateOut})
    if (self.world > 1 && !path->empty() && path->find("{rank}") == std::string::npos)
      fail(ErrorCode::InvalidArgument, "'", *path, "' is written by every rank, expected {rank} in it");
  bool isOwnProcess = options.ranks == 1; // else ranks are threads of this one
  std::shared_ptr<const Package> package =
      loadPackage(options.package, options, isOwnProcess ? self.rank : 0, isOwnProcess ? self.world : 1);
  std::vector<std::vector<NamedTensor>> outputs;
  if (options.ranks == 1)
    outputs.push_back(runOwnRank(package, options, self.rank));
  else
    outputs = runRanks(package, options);
  for (unsigned rank = 0; rank < options.ranks; ++rank)
    for (const NamedTensor &output : outputs[rank])
      printOutput((options.ranks > 1 ? concat("rank ", rank, " ") : "") + output.name, output.tensor);
  return 0;
}

} // namespace ds
