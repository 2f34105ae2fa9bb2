// One rank's live instance of a package: its threads, states and cached plans. A session runs one call at a time.
#ifndef DEEPSTRIDE_RUNTIME_CORE_SESSION_H
#define DEEPSTRIDE_RUNTIME_CORE_SESSION_H

#include "runtime/core/EntryRunner.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ds {

struct SessionOptions {
  unsigned threads = 0;                       // 0: ThreadPool::defaultThreads()
  std::shared_ptr<Communicator> communicator; // null: a world of one
  StatePlaces places = {};
};

class Session {
public:
  Session(std::shared_ptr<const Package> package, const SessionOptions &options = {});

  // Waits for what is under way to its states, which others may wait for, too.
  ~Session();

  const Package &package() const { return *loaded; }
  const EntryInfo &entry(size_t index) const { return loaded->variant().entries[index]; }
  unsigned threads() const { return pool.size(); }
  const Mesh &mesh() const { return place; }
  // Of a state whose shape does not depend on a call.
  Shape shapeOf(size_t entry, const StateInfo &state) const;

  // The entry that `run` would run. Throws as it does.
  size_t choose(size_t entry, const std::vector<TensorView> &inputs, const Pins &pins) const;

  // The first entry of a group runs the one whose guards hold. Throws Error annotated with the entry's name (and rank,
  // in a larger world). After a failure the other ranks' waits fail too. Every state is as it was, or, where the call
  // may have begun to write it, refused until it is restored or reset.
  void run(size_t entry, const std::vector<TensorView> &inputs, const Pins &pins, std::vector<Tensor> &outputs,
           LaunchObserver *observer = nullptr);

  // Calls that have begun, waiting ones too, throw Error(Cancelled) at their next launch. From any thread.
  void cancel() { cancellations.fetch_add(1, std::memory_order_relaxed); }

  // Runs an action on the states while no call runs.
  template <typename Action> auto withStates(Action action) -> decltype(action(std::declval<StateStore &>())) {
    std::lock_guard<std::mutex> lock(running);
    arrivals.settleAll();
    return action(store);
  }

  // The same of an action that looks at these states alone: it waits for no others that are under way.
  template <typename Action>
  auto withStates(const std::vector<std::string> &names, Action action)
      -> decltype(action(std::declval<StateStore &>())) {
    std::lock_guard<std::mutex> lock(running);
    for (const std::string &name : names)
      if (const Tensor *state = store.find(name))
        arrivals.settle(state->data(), state->bytes());
    return action(store);
  }

  // Waits for states that other ranks have updated and that are still under way; every rank does before it leaves.
  // Throws Error as `run` does.
  void settle();

private:
  std::shared_ptr<const Package> loaded;
  std::shared_ptr<Communicator> communicator;
  Mesh place;
  ThreadPool pool;
  StateStore store;
  Arrivals arrivals;
  AlignedBuffer workspace;
  std::vector<std::unique_ptr<EntryRunner>> runners;
  std::mutex running;
  std::atomic<uint64_t> cancellations{0}; // so far: a call is concerned by those after its begin
};

} // namespace ds
#endif
