#include "tools/ds-run/Work.h"

#include "runtime/core/Binding.h"

#include <algorithm>

namespace ds {
namespace {

struct Access {
  uint32_t buffer = 0;
  uint64_t read = 0, written = 0;
};

// In the order of operands and results; a buffer that is both has two.
std::vector<Access> accessesOf(const LaunchObserver::Event &event) {
  const LaunchInfo &launch = event.entry.launches[event.site];
  auto bytesOf = [&](const std::optional<SizeExpr> &bytes, uint64_t whole) {
    return bytes ? std::min(static_cast<uint64_t>(std::max<int64_t>(bytes->evaluate(event.symbols), 0)), whole) : whole;
  };
  std::vector<Access> accesses;
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    uint32_t operand = launch.operands[i];
    uint64_t whole = event.bufferBytes[operand];
    for (const Access &other : accesses) // a buffer that is several operands is not read more than once
      whole -= other.buffer == operand ? other.read : 0;
    accesses.push_back({operand, bytesOf(launch.reads.empty() ? std::nullopt : launch.reads[i], whole), 0});
  }
  for (const LaunchResult &result : launch.results) {
    uint64_t bytes = byteCount(result.type, evaluateShape(result.shape, event.symbols));
    bytes = std::min<uint64_t>(bytes, event.bufferBytes[result.buffer]);
    accesses.push_back({result.buffer, 0, bytesOf(result.writes, bytes)});
  }
  return accesses;
}

} // namespace

void CallRecorder::afterLaunch(const Event &event) {
  const LaunchInfo &launch = event.entry.launches[event.site];
  LaunchWork work{event.site, event.startNanoseconds, event.endNanoseconds, event.grid};
  work.entry = &event.entry;
  work.symbols = event.symbols;
  if (!counts)
    return launches.push_back(std::move(work));
  work.flops = static_cast<double>(launch.flops.evaluate(event.symbols));
  flopsByArithmetic[launch.arithmetic] += work.flops;
  for (const Access &access : accessesOf(event)) {
    const BufferInfo &buffer = event.entry.buffers[access.buffer];
    if (buffer.role == BufferRole::Workspace) {
      work.workspaceBytes += static_cast<double>(access.read + access.written);
      continue;
    }
    work.memoryBytes += static_cast<double>(access.read + access.written);
    bool isConstant = buffer.role == BufferRole::Constant;
    uint64_t id = isConstant ? package.variant().constants[buffer.index].offset : buffer.index;
    Traffic &total = traffic[{buffer.role, id, isConstant ? nullptr : &event.entry}];
    total.whole = std::max(total.whole, event.bufferBytes[access.buffer]);
    total.read += access.read;
    total.written += access.written;
  }
  launches.push_back(std::move(work));
}

double CallRecorder::flops() const {
  double total = 0;
  for (const auto &[arithmetic, count] : flopsByArithmetic)
    total += count;
  return total;
}

uint64_t CallRecorder::bytes() const {
  uint64_t total = 0;
  for (const auto &[buffer, part] : traffic) {
    // An output that a later launch reads is in a cache, or the later launch is slower for it.
    uint64_t read = std::get<0>(buffer) == BufferRole::Output ? 0 : part.read;
    total += std::min(read, part.whole) + std::min(part.written, part.whole);
  }
  return total;
}

double peakOf(const Ceilings &ceilings, const std::string &arithmetic) {
  if (arithmetic == "bf16")
    return ceilings.bf16Gflops.value_or(ceilings.f32Gflops);
  if (arithmetic == "int8")
    return ceilings.int8Gops.value_or(ceilings.f32Gflops);
  if (arithmetic == "int8_digits") // three multiply-adds of bytes stand for one of floats
    return ceilings.int8Gops ? *ceilings.int8Gops / 3 : ceilings.f32Gflops;
  if (arithmetic == "int8_pairs")
    return ceilings.int8PairsGops.value_or(ceilings.f32Gflops);
  if (arithmetic == "int16")
    return ceilings.int16Gops.value_or(ceilings.f32Gflops);
  if (arithmetic == "amx_bf16" || arithmetic == "amx-bf16")
    return ceilings.amxBf16Gflops.value_or(ceilings.f32Gflops);
  if (arithmetic == "amx_int8" || arithmetic == "amx-int8")
    return ceilings.amxInt8Gops.value_or(ceilings.f32Gflops);
  return arithmetic == "f64" ? ceilings.f32Gflops / 2 : ceilings.f32Gflops;
}

double rooflineOf(const Ceilings &ceilings, const LaunchWork &work, const std::string &arithmetic) {
  return 1e-6 *
         std::max({work.memoryBytes / ceilings.workingSetGBps,
                   (work.memoryBytes + work.workspaceBytes) / std::max(ceilings.cacheGBps, ceilings.workingSetGBps),
                   work.flops / peakOf(ceilings, arithmetic)});
}

double medianOf(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

} // namespace ds
