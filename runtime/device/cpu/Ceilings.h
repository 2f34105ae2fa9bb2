// What this machine can do at best, measured now: memory bandwidth and peak arithmetic of the instructions it has.
#ifndef DEEPSTRIDE_RUNTIME_DEVICE_CPU_CEILINGS_H
#define DEEPSTRIDE_RUNTIME_DEVICE_CPU_CEILINGS_H

#include "runtime/core/ThreadPool.h"

#include <optional>

namespace ds {

// Billions per second over all threads of the pool; nothing where the processor lacks the instructions.
struct Ceilings {
  double streamGBps = 0;
  double f32Gflops = 0;
  std::optional<double> bf16Gflops, int8Gops, amxBf16Gflops, amxInt8Gops;
};

// Takes about a second. The stream is read from at least max(512 MiB, bytes), so that no cache holds it.
Ceilings measureCeilings(ThreadPool &pool, size_t bytes);

// One instruction's throughput: the kernel runs `rounds` rounds and returns the operations it did. Null: the processor
// cannot. Defined in PeakKernels.cpp.
using PeakKernel = double (*)(long rounds);
struct PeakKernels {
  PeakKernel f32, bf16, int8, amxBf16, amxInt8;
  uint64_t (*read)(const uint8_t *data, size_t bytes); // sums memory; bytes is a multiple of 512
};
PeakKernels peakKernelsOfHost();

} // namespace ds
#endif
