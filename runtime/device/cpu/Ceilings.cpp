#include "runtime/device/cpu/Ceilings.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <sys/mman.h>
#include <utility>

namespace ds {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t unit = 4096, leastStream = size_t(512) << 20, cachePart = size_t(256) << 10;
constexpr size_t hugePage = size_t(2) << 20;
constexpr double longEnough = 0.004; // seconds; a launch of all threads takes a thousandth of it
constexpr size_t probes = 3;         // per round

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double processorSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Action> void onAllThreads(ThreadPool &pool, Action action) {
  pool.run([](void *context, unsigned thread) { (*static_cast<Action *>(context))(thread); }, &action, pool.size());
}

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

} // namespace

// One figure.
struct CeilingMeter::Quantity {
  // One thread's part: runs a loop `repetitions` times and returns its operations or bytes.
  using Loop = std::function<double(unsigned thread, long repetitions)>;

  double Ceilings::*target = nullptr;
  std::optional<double> Ceilings::*optionalTarget = nullptr;
  ThreadPool *pool = nullptr;
  std::vector<Loop> ways;
  long repetitions = 1;
  std::vector<double> rates; // of each round

  // On all threads; `busy`, if given, gets the seconds that a processor worked for the first of them, without waiting.
  double run(const Loop &loop, double *busy = nullptr) const {
    std::vector<double> done(pool->size());
    onAllThreads(*pool, [&](unsigned thread) {
      double start = processorSeconds();
      done[thread] = loop(thread, repetitions);
      if (thread == 0 && busy)
        *busy = processorSeconds() - start;
    });
    double total = 0;
    for (double part : done)
      total += part;
    return total;
  }

  void calibrate() {
    for (;; repetitions *= 2) {
      double busy = 0;
      run(ways[0], &busy);
      if (busy >= longEnough)
        break;
    }
  }

  // The best of a few probes: one during which a thread had to wait for a processor says nothing about what the machine
  // can do. Of several ways, whichever is fastest here.
  void measure() {
    double best = 0;
    for (size_t i = 0; i < std::max(probes, ways.size()); ++i) {
      auto start = Clock::now();
      double done = run(ways[i % ways.size()]);
      best = std::max(best, done / secondsSince(start) * 1e-9);
    }
    rates.push_back(best);
  }

  void store(double rate, Ceilings &ceilings) const {
    if (target)
      ceilings.*target = rate;
    else
      ceilings.*optionalTarget = rate;
  }
};

CeilingMeter::CeilingMeter(ThreadPool &pool, size_t workingSet) {
  auto wholeUnits = [&](size_t bytes) {
    size_t whole = unit * pool.size();
    return std::max<size_t>((bytes + whole - 1) / whole, 1) * whole;
  };
  size_t set = wholeUnits(workingSet), stream = wholeUnits(std::max(workingSet, leastStream));
  // Large pages: a ceiling should not be that of the address translation.
  mappedBytes = stream + hugePage;
  mapping = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    fail(ErrorCode::OutOfMemory, "no ", mappedBytes, " bytes to measure the memory with");
  madvise(mapping, mappedBytes, MADV_HUGEPAGE);
  auto *memory = reinterpret_cast<uint8_t *>((reinterpret_cast<uintptr_t>(mapping) + hugePage - 1) & ~(hugePage - 1));
  // Every thread touches its own part first, so that it lies near.
  size_t part = stream / pool.size();
  onAllThreads(pool, [&](unsigned thread) { std::memset(memory + thread * part, 1, part); });

  PeakKernels kernels = peakKernelsOfHost();
  auto addReads = [&](double Ceilings::*target, size_t bytes) {
    auto quantity = std::make_unique<Quantity>();
    quantity->pool = &pool;
    quantity->target = target;
    size_t own = bytes / pool.size();
    for (ReadKernel read : kernels.reads)
      quantity->ways.push_back([read, memory, own](unsigned thread, long repetitions) {
        uint64_t sum = 0;
        for (long i = 0; i < repetitions; ++i)
          sum += read(memory + thread * own, own);
        return sum ? static_cast<double>(own) * static_cast<double>(repetitions) : 0; // so that it is computed
      });
    quantities.push_back(std::move(quantity));
  };
  addReads(&Ceilings::streamGBps, stream);
  addReads(&Ceilings::workingSetGBps, set);
  addReads(&Ceilings::cacheGBps, wholeUnits(cachePart * pool.size()));
  auto addPeak = [&](PeakKernel kernel, double Ceilings::*target, std::optional<double> Ceilings::*optionalTarget) {
    if (!kernel)
      return;
    auto quantity = std::make_unique<Quantity>();
    quantity->pool = &pool;
    quantity->target = target;
    quantity->optionalTarget = optionalTarget;
    quantity->ways.push_back([kernel](unsigned, long repetitions) {
      constexpr long rounds = 1 << 12;
      return kernel(rounds * repetitions);
    });
    quantities.push_back(std::move(quantity));
  };
  addPeak(kernels.f32, &Ceilings::f32Gflops, nullptr);
  addPeak(kernels.bf16, nullptr, &Ceilings::bf16Gflops);
  addPeak(kernels.int8, nullptr, &Ceilings::int8Gops);
  addPeak(kernels.int8Pairs, nullptr, &Ceilings::int8PairsGops);
  addPeak(kernels.int16, nullptr, &Ceilings::int16Gops);
  addPeak(kernels.amxBf16, nullptr, &Ceilings::amxBf16Gflops);
  addPeak(kernels.amxInt8, nullptr, &Ceilings::amxInt8Gops);
  for (auto &quantity : quantities)
    quantity->calibrate();
}

CeilingMeter::~CeilingMeter() { munmap(mapping, mappedBytes); }

void CeilingMeter::measure() {
  for (auto &quantity : quantities)
    quantity->measure();
}

Ceilings CeilingMeter::medians() const {
  Ceilings ceilings;
  for (const auto &quantity : quantities)
    quantity->store(medianOf(quantity->rates), ceilings);
  return ceilings;
}

Ceilings CeilingMeter::best() const {
  Ceilings ceilings;
  for (const auto &quantity : quantities)
    quantity->store(*std::max_element(quantity->rates.begin(), quantity->rates.end()), ceilings);
  return ceilings;
}

} // namespace ds
