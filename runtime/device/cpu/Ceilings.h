// What this machine can do at best, measured now: memory bandwidth and peak arithmetic of the instructions it has.
#ifndef DEEPSTRIDE_RUNTIME_DEVICE_CPU_CEILINGS_H
#define DEEPSTRIDE_RUNTIME_DEVICE_CPU_CEILINGS_H

#include "runtime/core/ThreadPool.h"

#include <memory>
#include <optional>
#include <vector>

namespace ds {

// Billions per second over all threads of the pool; nothing where the processor lacks the instructions.
struct Ceilings {
  double streamGBps = 0;     // reads of memory that no cache holds: at least 512 MiB
  double workingSetGBps = 0; // reads of as many bytes as a call moves, again and again, as calls do it
  double cacheGBps = 0;      // reads of 256 KiB a thread
  double f32Gflops = 0;
  std::optional<double> bf16Gflops, int8Gops, int8PairsGops, int16Gops, amxBf16Gflops, amxInt8Gops;
};

// Measures in rounds, so that whoever measures something else between them sees the same machine: a noisy neighbour or
// a lower clock is in both, and medians of both can be compared (Williams, Waterman, Patterson: Roofline, CACM 2009).
class CeilingMeter {
public:
  // `workingSet`: bytes that a call moves. Takes max(512 MiB, workingSet) of memory.
  CeilingMeter(ThreadPool &pool, size_t workingSet);
  ~CeilingMeter();
  CeilingMeter(const CeilingMeter &) = delete;
  CeilingMeter &operator=(const CeilingMeter &) = delete;

  // One round: about a tenth of a second.
  void measure();
  // The median of every quantity over the rounds; of memory, by the loop that is fastest here. After one round at
  // least.
  Ceilings medians() const;
  // The same of the fastest rounds: what nothing can be faster than.
  Ceilings best() const;

private:
  struct Quantity;

  void *mapping = nullptr;
  size_t mappedBytes = 0;
  std::vector<std::unique_ptr<Quantity>> quantities;
};

// One instruction's throughput: the kernel runs `rounds` rounds and returns the operations it did. Null: the processor
// cannot. Defined in PeakKernels.cpp.
using PeakKernel = double (*)(long rounds);
// Sums memory that is aligned to 64 bytes; bytes is a multiple of 4096.
using ReadKernel = uint64_t (*)(const uint8_t *data, size_t bytes);
struct PeakKernels {
  PeakKernel f32 = nullptr, bf16 = nullptr, int8 = nullptr, int8Pairs = nullptr, int16 = nullptr, amxBf16 = nullptr,
             amxInt8 = nullptr;
  std::vector<ReadKernel> reads; // in one, four and eight streams, with and without prefetches
};
PeakKernels peakKernelsOfHost();

} // namespace ds
#endif
