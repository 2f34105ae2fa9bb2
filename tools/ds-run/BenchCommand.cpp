// ds-run bench: latency of calls, against the ceilings of this machine measured in the same process by the same number
// of threads.
#include "tools/ds-run/Inputs.h"
#include "tools/ds-run/Options.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Session.h"
#include "runtime/device/cpu/Ceilings.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace ds {
namespace {

using Json = nlohmann::ordered_json;

// Flops of the launches that a call really makes, by arithmetic; a skipped branch counts nothing.
class FlopCounter : public LaunchObserver {
public:
  std::map<std::string, double> byArithmetic;
  double total = 0;

  void afterLaunch(const Event &event) override {
    const LaunchInfo &launch = event.entry.launches[event.site];
    double flops = static_cast<double>(launch.flops.evaluate(event.symbols));
    byArithmetic[launch.arithmetic] += flops;
    total += flops;
  }
};

// Constants once, and what crosses the border: the least that a call has to move.
uint64_t bytesOfCall(const Package &package, const EntryInfo &entry, const std::vector<Tensor> &inputs,
                     const std::vector<Tensor> &outputs, const std::vector<NamedView> &states) {
  uint64_t bytes = 0;
  std::set<uint64_t> ranges;
  for (const BufferInfo &buffer : entry.buffers) {
    if (buffer.role != BufferRole::Constant)
      continue;
    const ConstantInfo &constant = package.variant().constants[buffer.index];
    if (ranges.insert(constant.offset).second)
      bytes += constant.bytes;
  }
  for (const std::vector<Tensor> *list : {&inputs, &outputs})
    for (const Tensor &tensor : *list)
      bytes += tensor.bytes();
  for (const NamedView &state : states)
    for (const StateInfo &info : entry.states)
      if (info.name == state.name)
        bytes += state.view.bytes();
  return bytes;
}

double peakOf(const Ceilings &ceilings, const std::string &arithmetic) {
  if (arithmetic == "bf16")
    return ceilings.bf16Gflops.value_or(ceilings.f32Gflops);
  if (arithmetic == "int8")
    return ceilings.int8Gops.value_or(ceilings.f32Gflops);
  if (arithmetic == "amx_bf16" || arithmetic == "amx-bf16")
    return ceilings.amxBf16Gflops.value_or(ceilings.f32Gflops);
  if (arithmetic == "amx_int8" || arithmetic == "amx-int8")
    return ceilings.amxInt8Gops.value_or(ceilings.f32Gflops);
  return arithmetic == "f64" ? ceilings.f32Gflops / 2 : ceilings.f32Gflops;
}

// Linear interpolation between the two nearest samples, as numpy does.
double percentile(const std::vector<double> &sorted, double share) {
  double position = share * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(position), above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - std::floor(position));
}

template <typename Call> std::vector<double> sample(Call call, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t least = 5, most = 1000000;
  auto measure = [&] {
    auto start = Clock::now();
    call();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  double warmUp = 0;
  for (int i = 0; i < 3 || warmUp < 100 * std::min(seconds, 1.0); ++i)
    warmUp += measure();
  std::vector<double> samples;
  for (double spent = 0; (spent < 1000 * seconds || samples.size() < least) && samples.size() < most;) {
    samples.push_back(measure());
    spent += samples.back();
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

Json orNull(const std::optional<double> &value) { return value ? Json(*value) : Json(nullptr); }

} // namespace

int benchCommand(const Options &options) {
  std::shared_ptr<const Package> package = loadPackage(options.package, options);
  SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  Session session(package, sessionOptions);
  size_t index = package->entryIndex(options.entry);
  Pins pins = parsePins(options.dims);
  std::vector<std::string> madeUp;
  std::vector<Tensor> inputs = gatherInputs(session.entry(index), options, pins, 0, &madeUp), outputs;
  std::vector<TensorView> views = viewsOf(inputs);
  index = session.choose(index, views, pins);
  const EntryInfo &entry = session.entry(index);

  FlopCounter flops;
  session.run(index, views, pins, outputs, &flops);
  noteRandomInputs(madeUp, options);
  uint64_t bytes = session.withStates(
      [&](StateStore &states) { return bytesOfCall(*package, entry, inputs, outputs, states.views()); });
  std::vector<double> samples = sample([&] { session.run(index, views, pins, outputs); }, options.duration);
  Ceilings ceilings;
  {
    ThreadPool pool(session.threads());
    ceilings = measureCeilings(pool, bytes);
  }

  double computeMs = 0;
  for (const auto &[arithmetic, count] : flops.byArithmetic)
    computeMs += count / peakOf(ceilings, arithmetic) * 1e-6;
  double memoryMs = static_cast<double>(bytes) / ceilings.streamGBps * 1e-6;
  double rooflineMs = std::max(memoryMs, computeMs);
  double median = percentile(samples, 0.5);
  double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());

  Json json;
  json["latency_ms"] = {{"min", samples.front()},
                        {"median", median},
                        {"mean", mean},
                        {"p90", percentile(samples, 0.9)},
                        {"p95", percentile(samples, 0.95)},
                        {"p99", percentile(samples, 0.99)}};
  json["bytes"] = bytes;
  json["flops"] = static_cast<uint64_t>(flops.total);
  json["ceilings"] = {{"stream_gbps", ceilings.streamGBps},
                      {"f32_gflops", ceilings.f32Gflops},
                      {"bf16_gflops", orNull(ceilings.bf16Gflops)},
                      {"int8_gops", orNull(ceilings.int8Gops)},
                      {"amx_bf16_gflops", orNull(ceilings.amxBf16Gflops)},
                      {"amx_int8_gops", orNull(ceilings.amxInt8Gops)}};
  json["roofline_ms"] = rooflineMs;
  json["roofline_fraction"] = rooflineMs / median;
  if (!options.json.empty()) {
    std::string text = json.dump(2) + "\n";
    AtomicFile file(options.json);
    file.write(text.data(), text.size());
    file.commit();
  }

  std::printf("%zu calls of '%s' on %u threads\n", samples.size(), entry.name.c_str(), session.threads());
  std::printf("latency ms: min %.4g, median %.4g, mean %.4g, p90 %.4g, p95 %.4g, p99 %.4g\n", samples.front(), median,
              mean, percentile(samples, 0.9), percentile(samples, 0.95), percentile(samples, 0.99));
  std::printf("work: %.4g MB, %.4g GFLOP: %.4g GB/s, %.4g GFLOP/s\n", static_cast<double>(bytes) * 1e-6,
              flops.total * 1e-9, static_cast<double>(bytes) / median * 1e-6, flops.total / median * 1e-6);
  std::printf("ceilings: stream %.4g GB/s, f32 %.4g GFLOP/s", ceilings.streamGBps, ceilings.f32Gflops);
  auto show = [](const char *name, const std::optional<double> &value, const char *unit) {
    if (value)
      std::printf(", %s %.4g %s", name, *value, unit);
  };
  show("bf16", ceilings.bf16Gflops, "GFLOP/s");
  show("int8", ceilings.int8Gops, "GOP/s");
  show("amx bf16", ceilings.amxBf16Gflops, "GFLOP/s");
  show("amx int8", ceilings.amxInt8Gops, "GOP/s");
  std::printf("\nroofline: %.4g ms (memory %.4g, compute %.4g), fraction %.3g\n", rooflineMs, memoryMs, computeMs,
              rooflineMs / median);
  return 0;
}

} // namespace ds
