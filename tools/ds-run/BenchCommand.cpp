// ds-run bench: latency of calls, against the ceilings of this machine measured in the same process by the same number
// of threads, in alternation: medians against medians.
#include "tools/ds-run/Measure.h"

#include "tools/ds-run/Json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace ds {
namespace {

// Linear interpolation between the two nearest samples, as numpy does.
double percentile(const std::vector<double> &sorted, double share) {
  double position = share * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(position), above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - std::floor(position));
}

} // namespace

int benchCommand(const Options &options) {
  Measured measured = measureCalls(options, options.duration.value_or(3));
  const std::vector<double> &samples = measured.latencies;
  const Ceilings &ceilings = measured.ceilings;
  double rooflineMs = std::max(measured.memoryMs(), measured.computeMs());
  double median = percentile(samples, 0.5);
  double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());

  Json json;
  json["latency_ms"] = {{"min", samples.front()},
                        {"median", median},
                        {"mean", mean},
                        {"p90", percentile(samples, 0.9)},
                        {"p95", percentile(samples, 0.95)},
                        {"p99", percentile(samples, 0.99)}};
  json["bytes"] = measured.bytes;
  json["flops"] = static_cast<uint64_t>(measured.flops);
  json["ceilings"] = ceilingsAsJson(ceilings);
  json["rounds"] = measured.rounds;
  json["roofline_ms"] = rooflineMs;
  json["roofline_fraction"] = rooflineMs / median;
  json["kernels"] = Json::array();
  std::vector<Share> kernels = sharesOf(measured, [&](size_t i) { return measured.launchInfo(i).kernel; });
  sortByTime(kernels);
  for (const Share &share : kernels)
    json["kernels"].push_back(shareAsJson(share));
  if (!options.json.empty())
    writeText(options.json, json.dump(2) + "\n");

  double megabytes = static_cast<double>(measured.bytes) * 1e-6;
  std::printf("%zu calls of '%s' on %u threads\n", samples.size(), measured.entry().name.c_str(), measured.threads);
  std::printf("latency ms: min %.4g, median %.4g, mean %.4g, p90 %.4g, p95 %.4g, p99 %.4g\n", samples.front(), median,
              mean, percentile(samples, 0.9), percentile(samples, 0.95), percentile(samples, 0.99));
  std::printf("work: %.4g MB, %.4g GFLOP: %.4g GB/s, %.4g GFLOP/s\n", megabytes, measured.flops * 1e-9,
              megabytes / median, measured.flops / median * 1e-6);
  std::printf("ceilings: stream %.4g GB/s, %.4g MB again and again %.4g GB/s, f32 %.4g GFLOP/s", ceilings.streamGBps,
              megabytes, ceilings.workingSetGBps, ceilings.f32Gflops);
  auto show = [](const char *name, const std::optional<double> &value, const char *unit) {
    if (value)
      std::printf(", %s %.4g %s", name, *value, unit);
  };
  show("bf16", ceilings.bf16Gflops, "GFLOP/s");
  show("int8", ceilings.int8Gops, "GOP/s");
  show("amx bf16", ceilings.amxBf16Gflops, "GFLOP/s");
  show("amx int8", ceilings.amxInt8Gops, "GOP/s");
  std::printf("\nroofline: %.4g ms (memory %.4g, compute %.4g), fraction %.3g\n", rooflineMs, measured.memoryMs(),
              measured.computeMs(), rooflineMs / median);
  return 0;
}

} // namespace ds
