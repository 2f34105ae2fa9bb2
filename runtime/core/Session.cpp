#include "runtime/core/Session.h"

namespace ds {

Session::Session(std::shared_ptr<const Package> package, const SessionOptions &options)
    : loaded(std::move(package)), communicator(options.communicator),
      pool(options.threads ? options.threads : ThreadPool::defaultThreads()), store(*loaded) {
  for (size_t i = 0; i < loaded->variant().entries.size(); ++i)
    runners.push_back(std::make_unique<EntryRunner>(*loaded, i, pool, store, communicator.get()));
}

void Session::run(size_t entry, const std::vector<TensorView> &inputs, const Pins &pins, std::vector<Tensor> &outputs,
                  LaunchObserver *observer) {
  std::lock_guard<std::mutex> lock(running);
  try {
    runners[entry]->run(inputs, pins, outputs, observer);
  } catch (Error &error) {
    error.annotate("entry '" + this->entry(entry).name + "'");
    if (communicator) {
      communicator->leave(error.what());
      if (communicator->world() > 1)
        error.annotate(concat("rank ", communicator->rank()));
    }
    throw;
  }
}

} // namespace ds
