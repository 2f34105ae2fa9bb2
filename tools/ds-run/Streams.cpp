// Several sessions of one package that are called at once: what a server does with requests that do not wait for each
// other.
#include "tools/ds-run/Measure.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace ds {
namespace {

using Clock = std::chrono::steady_clock;

// Where all streams wait until the last one is warm; one that fails lets the others go, to end.
class StartLine {
public:
  explicit StartLine(unsigned count) : missing(count) {}

  // The time at which all started, or none when one has failed.
  std::optional<Clock::time_point> wait() {
    std::unique_lock<std::mutex> lock(mutex);
    if (--missing == 0)
      release();
    changed.wait(lock, [&] { return missing == 0 || hasFailed; });
    return hasFailed ? std::nullopt : std::optional(start);
  }

  void fail() {
    std::lock_guard<std::mutex> lock(mutex);
    hasFailed = true;
    changed.notify_all();
  }

private:
  void release() {
    start = Clock::now();
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  unsigned missing;
  bool hasFailed = false;
  Clock::time_point start;
};

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Stream {
public:
  Stream(const std::shared_ptr<const Package> &package, const Options &options, unsigned threads)
      : session(package, threadsOnly(threads)), pins(parsePins(options.dims)) {
    index = package->entryIndex(options.entry);
    std::vector<std::string> madeUp; // which the measurement of one session has told about
    inputs = gatherInputs(session.entry(index), options, pins, 0, &madeUp);
    views = viewsOf(inputs);
    index = session.choose(index, views, pins);
  }

  void run(const Amount &amount, StartLine &line) {
    double warm = 0;
    for (uint64_t calls = 0; amount.warmup ? calls < *amount.warmup : calls < 3 || warm < 100 * amount.seconds / 3;
         ++calls)
      warm += call();
    std::optional<Clock::time_point> start = line.wait();
    while (start && (amount.iterations ? latencies.size() < *amount.iterations
                                       : latencies.empty() || millisecondsSince(*start) < 1000 * amount.seconds))
      latencies.push_back(call());
    if (start)
      seconds = millisecondsSince(*start) / 1000;
  }

  std::vector<double> latencies;
  double seconds = 0; // until its last call was done
  std::exception_ptr failure;

private:
  static SessionOptions threadsOnly(unsigned threads) {
    SessionOptions options;
    options.threads = threads;
    return options;
  }

  double call() {
    Clock::time_point start = Clock::now();
    session.run(index, views, pins, outputs);
    return millisecondsSince(start);
  }

  Session session;
  Pins pins;
  size_t index = 0;
  std::vector<Tensor> inputs, outputs;
  std::vector<TensorView> views;
};

} // namespace

Streams measureStreams(const Options &options, const Amount &amount) {
  Streams result;
  result.count = options.streams;
  unsigned all = options.threads ? options.threads : ThreadPool::defaultThreads();
  result.threads = std::max(1u, all / options.streams);
  Options verified = ofManyCalls(options);
  verified.noVerify = true; // the measurement of one session has verified it
  std::shared_ptr<const Package> package = loadPackage(options.package, verified);
  std::vector<std::unique_ptr<Stream>> streams;
  for (unsigned i = 0; i < options.streams; ++i)
    streams.push_back(std::make_unique<Stream>(package, options, result.threads));
  StartLine line(options.streams);
  std::vector<std::thread> threads;
  for (auto &stream : streams)
    threads.emplace_back([&line, &amount, stream = stream.get()] {
      try {
        stream->run(amount, line);
      } catch (...) {
        stream->failure = std::current_exception();
        line.fail();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &stream : streams) {
    if (stream->failure)
      std::rethrow_exception(stream->failure);
    result.latencies.insert(result.latencies.end(), stream->latencies.begin(), stream->latencies.end());
    result.seconds = std::max(result.seconds, stream->seconds);
  }
  std::sort(result.latencies.begin(), result.latencies.end());
  return result;
}

} // namespace ds
