#include "runtime/device/cpu/Ceilings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

namespace ds {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <typename Action> void onAllThreads(ThreadPool &pool, Action action) {
  pool.run([](void *context, unsigned thread) { (*static_cast<Action *>(context))(thread); }, &action, pool.size());
}

// Doubles the work until a run takes long enough, then the best of a few.
std::optional<double> measurePeak(ThreadPool &pool, PeakKernel kernel) {
  if (!kernel)
    return std::nullopt;
  double best = 0;
  int measured = 0;
  for (long rounds = 1 << 12; measured < 5;) {
    std::vector<double> operations(pool.size());
    auto start = Clock::now();
    onAllThreads(pool, [&](unsigned thread) { operations[thread] = kernel(rounds); });
    double seconds = secondsSince(start), total = 0;
    for (double count : operations)
      total += count;
    if (seconds < 0.015) {
      rounds *= 2;
      continue;
    }
    best = std::max(best, total / seconds * 1e-9);
    ++measured;
  }
  return best;
}

double measureStream(ThreadPool &pool, PeakKernels kernels, size_t bytes) {
  constexpr size_t unit = 4096;
  size_t total = std::max(bytes, size_t(512) << 20);
  AlignedBuffer memory(total + unit);
  auto part = [&](unsigned thread) { return staticChunk(static_cast<int64_t>(total), unit, thread, pool.size()); };
  // Every thread touches its own part first, so that it lies near.
  onAllThreads(pool, [&](unsigned thread) {
    WorkRange range = part(thread);
    std::memset(memory.data() + range.begin, 1, static_cast<size_t>(range.end - range.begin));
  });
  std::atomic<uint64_t> sink{0};
  double best = 0;
  for (int i = 0; i < 6; ++i) {
    auto start = Clock::now();
    onAllThreads(pool, [&](unsigned thread) {
      WorkRange range = part(thread);
      sink += kernels.read(memory.data() + range.begin, static_cast<size_t>(range.end - range.begin) / 512 * 512);
    });
    best = std::max(best, static_cast<double>(total) / secondsSince(start) * 1e-9);
  }
  return sink ? best : 0;
}

} // namespace

Ceilings measureCeilings(ThreadPool &pool, size_t bytes) {
  PeakKernels kernels = peakKernelsOfHost();
  Ceilings ceilings;
  ceilings.streamGBps = measureStream(pool, kernels, bytes);
  ceilings.f32Gflops = measurePeak(pool, kernels.f32).value_or(0);
  ceilings.bf16Gflops = measurePeak(pool, kernels.bf16);
  ceilings.int8Gops = measurePeak(pool, kernels.int8);
  ceilings.amxBf16Gflops = measurePeak(pool, kernels.amxBf16);
  ceilings.amxInt8Gops = measurePeak(pool, kernels.amxInt8);
  return ceilings;
}

} // namespace ds
