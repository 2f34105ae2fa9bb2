#include "tools/ds-run/Measure.h"

#include "runtime/core/MappedFile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

namespace ds {
namespace {

constexpr size_t leastSamples = 9, mostSamples = 1000000, watchedCalls = 4;

double millisecondsOf(const std::function<void()> &call) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  call();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Times of the same launches in several calls, and of the calls; a call that launched something else begins anew.
class LaunchTimes {
public:
  // `callMs`: nothing where something else took time.
  void add(const std::vector<LaunchWork> &launches, std::optional<double> callMs) {
    bool isSame = launches.size() == times.size();
    for (size_t i = 0; isSame && i < launches.size(); ++i)
      isSame = Site(launches[i].entry, launches[i].site) == sites[i];
    if (!isSame) {
      times.assign(launches.size(), {});
      calls.clear();
      sites.clear();
      for (const LaunchWork &launch : launches)
        sites.emplace_back(launch.entry, launch.site);
    }
    for (size_t i = 0; i < launches.size(); ++i)
      times[i].push_back(static_cast<double>(launches[i].end - launches[i].start) * 1e-6);
    calls.push_back(callMs);
  }

  // Medians and ends over all calls.
  void storeTimes(Measured &result) const {
    result.watchedCalls = calls.size();
    for (const std::vector<double> &launch : times) {
      auto [least, most] = std::minmax_element(launch.begin(), launch.end());
      result.launchMs.push_back(medianOf(launch));
      result.launchLeastMs.push_back(*least);
      result.launchMostMs.push_back(*most);
      result.launchTotalMs += result.launchMs.back();
    }
  }

  // Sums of means are means of sums, which medians are not where a busy machine delays now this launch, now that one.
  void storeMeans(Measured &result) const {
    std::vector<size_t> order;
    for (size_t i = 0; i < calls.size(); ++i)
      if (calls[i])
        order.push_back(i);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return *calls[a] < *calls[b]; });
    order.resize((order.size() + 1) / 2);
    auto meanOf = [&](auto valueAt) {
      double sum = 0;
      for (size_t call : order)
        sum += valueAt(call);
      return order.empty() ? 0 : sum / static_cast<double>(order.size());
    };
    result.watchedMs = meanOf([&](size_t call) { return *calls[call]; });
    result.meanLaunchMs.clear();
    for (const std::vector<double> &launch : times)
      result.meanLaunchMs.push_back(meanOf([&](size_t call) { return launch[call]; }));
  }

private:
  using Site = std::pair<const EntryInfo *, uint32_t>;
  std::vector<Site> sites;
  std::vector<std::vector<double>> times;
  std::vector<std::optional<double>> calls;
};

Dims dimsOf(const EntryInfo &entry, const std::vector<TensorView> &inputs, const Pins &pins) {
  Dims dims;
  std::vector<int64_t> values = bindSymbols(entry, inputs, pins);
  for (size_t i = 0; i < values.size(); ++i)
    if (entry.symbols[i].kind == SymbolKind::Dim)
      dims.emplace_back(entry.symbols[i].name, values[i]);
  return dims;
}

} // namespace

double Measured::callMs() const { return medianOf(latencies); }

double Measured::memoryMs() const { return static_cast<double>(bytes) / ceilings.workingSetGBps * 1e-6; }

double Measured::computeMs() const {
  double ms = 0;
  for (const auto &[arithmetic, count] : flopsByArithmetic)
    ms += count / peakOf(ceilings, arithmetic) * 1e-6;
  return ms;
}

Amount amountOf(const Options &options, double seconds) {
  return {options.duration.value_or(seconds), options.iterations, options.warmup};
}

Measured measureCalls(const Options &options, const Amount &amount) {
  Measured result;
  result.package = loadPackage(options.package, ofManyCalls(options));
  SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  Session session(result.package, sessionOptions);
  size_t index = result.package->entryIndex(options.entry);
  Pins pins = parsePins(options.dims);
  std::vector<std::string> madeUp;
  std::vector<Tensor> inputs = gatherInputs(session.entry(index), options, pins, 0, &madeUp), outputs;
  std::vector<TensorView> views = viewsOf(inputs);
  result.entryIndex = index = session.choose(index, views, pins);
  result.dims = dimsOf(session.entry(index), views, pins);
  bool isFirst = true;
  measure(
      [&](LaunchObserver *observer) {
        session.run(index, views, pins, outputs, observer);
        if (std::exchange(isFirst, false))
          noteRandomInputs(madeUp, options);
      },
      session.threads(), amount, result);
  return result;
}

void measure(const std::function<void(LaunchObserver *)> &call, unsigned threads, const Amount &amount,
             Measured &result) {
  double seconds = amount.seconds;
  result.threads = threads;
  auto time = [&] { return millisecondsOf([&] { call(nullptr); }); };
  CallRecorder first(*result.package);
  call(&first);
  double warmUp = 0;             // memory is touched, threads are awake
  constexpr double longMs = 300; // of such calls, few tell as much
  auto isCold = [&](uint64_t calls) {
    return amount.warmup ? calls < *amount.warmup
                         : (calls < 3 && warmUp < longMs) || warmUp < 100 * std::min(seconds, 1.0);
  };
  for (uint64_t calls = 0; isCold(calls); ++calls)
    warmUp += time();
  bool isLong = warmUp >= longMs;
  ThreadPool pool(threads);
  CeilingMeter meter(pool, first.bytes());
  LaunchTimes times;
  result.rounds = seconds < 0.1 ? 3 : seconds < 1 ? 5 : 9;
  if (amount.iterations)
    result.rounds =
        std::min<size_t>(result.rounds, std::max<uint64_t>(1, *amount.iterations / (amount.watchesAll ? 2 : 1)));
  double part = 1000 * seconds / static_cast<double>(result.rounds);
  size_t leastPart = isLong ? 1 : (leastSamples + result.rounds - 1) / result.rounds;
  for (size_t round = 0; round < result.rounds; ++round) {
    // Whole numbers that add up to what was asked for, the rounds as equal as they can be.
    auto upTo = [&](size_t rounds) { return *amount.iterations * rounds / result.rounds; };
    size_t watched = isLong ? 2 : watchedCalls;
    if (amount.iterations && amount.watchesAll)
      watched = upTo(round + 1) - upTo(round);
    // The ceilings have emptied the caches and left this pool's threads asleep: these calls are not like the others.
    for (double settled = 0; settled == 0 || settled < std::min(part / 10, 10.0);)
      settled += time();
    size_t samples = 0;
    auto watch = [&, i = size_t(0)]() mutable {
      if (i == watched)
        return;
      // Counting takes time between launches: only the last one does.
      bool counts = ++i == watched;
      CallRecorder recorder(*result.package, counts);
      double ms = millisecondsOf([&] { call(&recorder); });
      times.add(recorder.launches, counts ? std::nullopt : std::optional(ms));
      if (!counts)
        return;
      result.launches = recorder.launches;
      result.bytes = recorder.bytes();
      result.flops = recorder.flops();
      result.flopsByArithmetic = recorder.flopsByArithmetic;
    };
    auto wantsMore = [&](double spent) {
      if (amount.iterations)
        return result.latencies.size() < upTo(round + 1);
      return (spent < part || samples < leastPart) && result.latencies.size() < mostSamples;
    };
    // In turns, so that both see the same machine.
    for (double spent = 0; wantsMore(spent); ++samples) {
      result.latencies.push_back(time());
      spent += result.latencies.back();
      watch();
    }
    for (size_t i = 0; i < watched; ++i)
      watch();
    meter.measure();
  }
  std::sort(result.latencies.begin(), result.latencies.end());
  times.storeTimes(result);
  times.storeMeans(result);
  result.ceilings = meter.medians();
  result.peaks = meter.best();
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
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout); // what does not arrive shows when it is flushed
    return;
  }
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

} // namespace ds
