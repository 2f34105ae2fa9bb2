// ds-run bench: latency of calls, against the ceilings of this machine measured in the same process by the same number
// of threads, in alternation: medians against medians.
#include "tools/ds-run/Measure.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
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

std::string percentileName(double percent) { return concat("p", percent); }

// "min 1.2, median 1.3, mean 1.3, p90 1.4" and the same as JSON.
struct Latency {
  explicit Latency(const std::vector<double> &sorted, const std::vector<double> &percents) {
    add("min", sorted.front());
    add("median", percentile(sorted, 0.5));
    add("mean", std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size()));
    for (double percent : percents)
      add(percentileName(percent), percentile(sorted, percent / 100));
  }

  Json json;
  std::string text;

private:
  void add(const std::string &name, double value) {
    json[name] = value;
    char shown[32];
    std::snprintf(shown, sizeof(shown), "%.4g", value);
    text += (text.empty() ? "" : ", ") + name + " " + shown;
  }
};

std::string dimsText(const Dims &dims) {
  std::string text;
  for (const auto &[name, size] : dims)
    text += concat(text.empty() ? ", " : " ", name, "=", size);
  return text;
}

Json asJson(const Measured &measured, const Latency &latency, double rooflineMs) {
  Json json;
  json["entry"] = measured.entry().name;
  json["dims"] = Json::object();
  for (const auto &[name, size] : measured.dims)
    json["dims"][name] = size;
  json["threads"] = measured.threads;
  json["calls"] = measured.latencies.size();
  json["latency_ms"] = latency.json;
  json["calls_per_second"] = 1000 / latency.json["mean"].get<double>();
  json["bytes"] = measured.bytes;
  json["flops"] = static_cast<uint64_t>(measured.flops);
  json["ceilings"] = ceilingsAsJson(measured.ceilings);
  json["rounds"] = measured.rounds;
  json["roofline_ms"] = rooflineMs;
  json["roofline_fraction"] = rooflineMs / measured.callMs();
  json["kernels"] = Json::array();
  std::vector<Share> kernels = sharesOf(measured, [&](size_t i) { return measured.launchInfo(i).kernel; });
  sortByTime(kernels);
  for (const Share &share : kernels)
    json["kernels"].push_back(shareAsJson(share));
  return json;
}

void print(const Measured &measured, const Latency &latency, double rooflineMs) {
  const Ceilings &ceilings = measured.ceilings;
  double megabytes = static_cast<double>(measured.bytes) * 1e-6, median = measured.callMs();
  std::printf("%zu calls of '%s' on %u %s%s\n", measured.latencies.size(), oneLine(measured.entry().name).c_str(),
              measured.threads, measured.threads == 1 ? "thread" : "threads", oneLine(dimsText(measured.dims)).c_str());
  std::printf("latency ms: %s\n", latency.text.c_str());
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
  show("int8 in pairs", ceilings.int8PairsGops, "GOP/s");
  show("int16", ceilings.int16Gops, "GOP/s");
  show("amx bf16", ceilings.amxBf16Gflops, "GFLOP/s");
  show("amx int8", ceilings.amxInt8Gops, "GOP/s");
  std::printf("\nroofline: %.4g ms (memory %.4g, compute %.4g), fraction %.3g\n", rooflineMs, measured.memoryMs(),
              measured.computeMs(), rooflineMs / median);
}

} // namespace

int benchCommand(const Options &options) {
  Amount amount = amountOf(options, 3);
  Measured measured = measureCalls(options, amount);
  double rooflineMs = std::max(measured.memoryMs(), measured.computeMs());
  Latency latency(measured.latencies, options.percentiles);
  Json json = asJson(measured, latency, rooflineMs);
  bool isPrinted = options.json != "-";
  if (isPrinted)
    print(measured, latency, rooflineMs);
  if (options.streams > 1) {
    Streams streams = measureStreams(options, amount);
    Latency each(streams.latencies, options.percentiles);
    json["streams"] = {
        {"count", streams.count},     {"threads", streams.threads}, {"calls", streams.latencies.size()},
        {"seconds", streams.seconds}, {"latency_ms", each.json},    {"calls_per_second", streams.perSecond()}};
    if (isPrinted)
      std::printf("%u streams on %u %s each: %zu calls, %.4g per second (one session: %.4g)\nlatency ms: %s\n",
                  streams.count, streams.threads, streams.threads == 1 ? "thread" : "threads", streams.latencies.size(),
                  streams.perSecond(), json["calls_per_second"].get<double>(), each.text.c_str());
  }
  if (!options.json.empty())
    writeText(options.json, json.dump(2) + "\n");
  return 0;
}

} // namespace ds
