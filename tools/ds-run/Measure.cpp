#include "tools/ds-run/Measure.h"

#include "runtime/core/MappedFile.h"

#include <algorithm>
#include <chrono>
#include <functional>

namespace ds {
namespace {

constexpr size_t leastSamples = 5, mostSamples = 1000000, watchedCalls = 3;

double millisecondsOf(const std::function<void()> &call) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  call();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Times of the same launch in several calls; a call that launched something else begins anew.
class LaunchTimes {
public:
  void add(const std::vector<LaunchWork> &launches) {
    bool isSame = launches.size() == times.size();
    for (size_t i = 0; isSame && i < launches.size(); ++i)
      isSame = launches[i].site == sites[i];
    if (!isSame) {
      times.assign(launches.size(), {});
      sites.clear();
      for (const LaunchWork &launch : launches)
        sites.push_back(launch.site);
    }
    for (size_t i = 0; i < launches.size(); ++i)
      times[i].push_back(static_cast<double>(launches[i].end - launches[i].start) * 1e-6);
  }

  double median(size_t launch) const { return medianOf(times[launch]); }

private:
  std::vector<uint32_t> sites;
  std::vector<std::vector<double>> times;
};

} // namespace

double Measured::memoryMs() const { return static_cast<double>(bytes) / ceilings.workingSetGBps * 1e-6; }

double Measured::computeMs() const {
  double ms = 0;
  for (const auto &[arithmetic, count] : flopsByArithmetic)
    ms += count / peakOf(ceilings, arithmetic) * 1e-6;
  return ms;
}

Measured measureCalls(const Options &options, double seconds) {
  Measured result;
  result.package = loadPackage(options.package, options);
  SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  Session session(result.package, sessionOptions);
  result.threads = session.threads();
  size_t index = result.package->entryIndex(options.entry);
  Pins pins = parsePins(options.dims);
  std::vector<std::string> madeUp;
  std::vector<Tensor> inputs = gatherInputs(session.entry(index), options, pins, 0, &madeUp), outputs;
  std::vector<TensorView> views = viewsOf(inputs);
  result.entryIndex = index = session.choose(index, views, pins);
  auto call = [&](LaunchObserver *observer = nullptr) { session.run(index, views, pins, outputs, observer); };

  CallRecorder first(*result.package);
  call(&first);
  noteRandomInputs(madeUp, options);
  double warmUp = 0; // memory is touched, threads are awake
  for (int i = 0; i < 3 || warmUp < 100 * std::min(seconds, 1.0); ++i)
    warmUp += millisecondsOf([&] { call(); });
  ThreadPool pool(session.threads());
  CeilingMeter meter(pool, first.bytes());
  LaunchTimes times;
  result.rounds = seconds < 0.1 ? 3 : seconds < 1 ? 5 : 9;
  double part = 1000 * seconds / static_cast<double>(result.rounds);
  size_t leastPart = (leastSamples + result.rounds - 1) / result.rounds;
  for (size_t round = 0; round < result.rounds; ++round) {
    // The ceilings have emptied the caches and left this pool's threads asleep: these calls are not like the others.
    for (double settled = 0; settled == 0 || settled < std::min(part / 10, 10.0);)
      settled += millisecondsOf([&] { call(); });
    size_t samples = 0;
    for (double spent = 0; (spent < part || samples < leastPart) && result.latencies.size() < mostSamples; ++samples) {
      result.latencies.push_back(millisecondsOf([&] { call(); }));
      spent += result.latencies.back();
    }
    for (size_t i = 0; i < watchedCalls; ++i) {
      CallRecorder recorder(*result.package);
      call(&recorder);
      times.add(recorder.launches);
      result.launches = recorder.launches;
      result.bytes = recorder.bytes();
      result.flops = recorder.flops();
      result.flopsByArithmetic = recorder.flopsByArithmetic;
    }
    meter.measure();
  }
  std::sort(result.latencies.begin(), result.latencies.end());
  for (size_t i = 0; i < result.launches.size(); ++i) {
    result.launchMs.push_back(times.median(i));
    result.launchTotalMs += result.launchMs.back();
  }
  result.ceilings = meter.medians();
  return result;
}

std::vector<Share> sharesOf(const Measured &measured, const std::function<std::string(size_t)> &keyOf,
                            std::vector<std::string> *keys) {
  std::map<std::string, size_t> places;
  std::vector<Share> shares;
  if (keys)
    keys->clear();
  for (size_t i = 0; i < measured.launches.size(); ++i) {
    const LaunchInfo &info = measured.launchInfo(i);
    const LaunchWork &work = measured.launches[i];
    std::string key = keyOf(i);
    auto [place, isNew] = places.emplace(key, shares.size());
    if (isNew) {
      shares.emplace_back();
      shares.back().kernel = info.kernel, shares.back().site = info.site, shares.back().arithmetic = info.arithmetic;
      if (keys)
        keys->push_back(key);
    }
    Share &share = shares[place->second];
    ++share.calls;
    share.ms += measured.launchMs[i];
    share.flops += work.flops;
    share.memoryBytes += work.memoryBytes;
    share.workspaceBytes += work.workspaceBytes;
    share.rooflineMs += rooflineOf(measured.ceilings, work, info.arithmetic);
  }
  return shares;
}

void sortByTime(std::vector<Share> &shares) {
  std::sort(shares.begin(), shares.end(),
            [](const Share &a, const Share &b) { return a.ms != b.ms ? a.ms > b.ms : a.kernel < b.kernel; });
}

void writeText(const std::string &path, const std::string &text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

} // namespace ds
