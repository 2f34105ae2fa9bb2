#include "runtime/core/Session.h"

#include "runtime/core/Guards.h"

namespace ds {

static Mesh meshOf(const Communicator *communicator) {
  return communicator ? Mesh{communicator->world(), communicator->rank()} : Mesh();
}

Session::Session(std::shared_ptr<const Package> package, const SessionOptions &options)
    : loaded(std::move(package)), communicator(options.communicator), place(meshOf(communicator.get())),
      pool(options.threads ? options.threads : ThreadPool::defaultThreads()), store(*loaded, place, options.places),
      arrivals(communicator.get()) {
  for (size_t i = 0; i < loaded->variant().entries.size(); ++i)
    runners.push_back(std::make_unique<EntryRunner>(*loaded, i, pool, store, workspace, communicator.get(), arrivals));
}

Session::~Session() {
  try {
    settle();
  } catch (const std::exception &) { // which the next collective of this rank says, too
  }
}

void Session::settle() {
  std::lock_guard<std::mutex> lock(running);
  arrivals.settleAll();
}

Shape Session::shapeOf(size_t index, const StateInfo &state) const {
  return evaluateShape(state.shape, meshSymbols(entry(index), place));
}

size_t Session::choose(size_t entry, const std::vector<TensorView> &inputs, const Pins &pins) const {
  return annotated("entry '" + this->entry(entry).name + "'",
                   [&] { return chooseEntry(loaded->variant(), entry, inputs, pins); });
}

void Session::run(size_t entry, const std::vector<TensorView> &inputs, const Pins &pins, std::vector<Tensor> &outputs,
                  LaunchObserver *observer) {
  CallWatch watch = {observer, &cancellations, cancellations.load(std::memory_order_relaxed)};
  std::lock_guard<std::mutex> lock(running);
  auto abandon = [&](const char *why) {
    if (communicator)
      communicator->leave(why); // first: nothing is written any more
    arrivals.abandon(why);
    store.failCall(why);
  };
  const VariantInfo &variant = loaded->variant();
  size_t chosen = entry;
  try {
    watch.check(); // while it waited
    chosen = chooseEntry(variant, entry, inputs, pins);
    runners[chosen]->run(inputs, pinsOfEntry(variant, chosen, pins), outputs, watch);
    store.endCall();
  } catch (Error &error) {
    error.annotate("entry '" + this->entry(chosen).name + "'");
    abandon(error.what());
    if (communicator && communicator->world() > 1)
      error.annotate(concat("rank ", communicator->rank()));
    throw;
  } catch (const std::exception &error) { // out of memory
    abandon(error.what());
    throw;
  }
}

} // namespace ds
