// ds-run profile: where the time of one call goes, by kernel and as a trace of launches.
#include "tools/ds-run/Inputs.h"
#include "tools/ds-run/Options.h"

#include "runtime/core/MappedFile.h"
#include "runtime/core/Session.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

namespace ds {
namespace {

struct Record {
  uint32_t site;
  int64_t start, end, grid;
  double flops;
};

class Recorder : public LaunchObserver {
public:
  std::vector<Record> records;

  void afterLaunch(const Event &event) override {
    double flops = static_cast<double>(event.entry.launches[event.site].flops.evaluate(event.symbols));
    records.push_back({event.site, event.startNanoseconds, event.endNanoseconds, event.grid, flops});
  }
};

void writeTrace(const std::string &path, const EntryInfo &entry, const std::vector<Record> &records) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  int64_t origin = records.empty() ? 0 : records.front().start;
  for (const Record &record : records) {
    const LaunchInfo &launch = entry.launches[record.site];
    events.push_back({{"name", launch.site},
                      {"cat", launch.kernel},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", static_cast<double>(record.start - origin) * 1e-3},
                      {"dur", static_cast<double>(record.end - record.start) * 1e-3},
                      {"args", {{"kernel", launch.kernel}, {"grid", record.grid}, {"flops", record.flops}}}});
  }
  nlohmann::ordered_json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", events}};
  std::string text = trace.dump() + "\n";
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

struct KernelTotal {
  std::string kernel, site; // the first site, as an example
  size_t calls = 0;
  double ms = 0, flops = 0;
};

} // namespace

int profileCommand(const Options &options) {
  std::shared_ptr<const Package> package = loadPackage(options.package, options);
  SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  Session session(package, sessionOptions);
  size_t index = package->entryIndex(options.entry);
  Pins pins = parsePins(options.dims);
  std::vector<std::string> madeUp;
  std::vector<Tensor> inputs = gatherInputs(session.entry(index), options, pins, 0, &madeUp), outputs;
  index = session.choose(index, viewsOf(inputs), pins);
  const EntryInfo &entry = session.entry(index);
  for (int i = 0; i < 3; ++i) // memory is touched and threads are awake
    session.run(index, viewsOf(inputs), pins, outputs);
  Recorder recorder;
  session.run(index, viewsOf(inputs), pins, outputs, &recorder);
  noteRandomInputs(madeUp, options);

  std::map<std::string, KernelTotal> totals;
  double all = 0;
  for (const Record &record : recorder.records) {
    const LaunchInfo &launch = entry.launches[record.site];
    KernelTotal &total = totals[launch.kernel];
    if (total.calls++ == 0)
      total.kernel = launch.kernel, total.site = launch.site;
    double ms = static_cast<double>(record.end - record.start) * 1e-6;
    total.ms += ms;
    total.flops += record.flops;
    all += ms;
  }
  std::vector<KernelTotal> sorted;
  for (const auto &[kernel, total] : totals)
    sorted.push_back(total);
  std::sort(sorted.begin(), sorted.end(), [](const KernelTotal &a, const KernelTotal &b) { return a.ms > b.ms; });
  std::printf("%zu launches, %.4g ms\n%10s %6s %6s %10s  kernel (first site)\n", recorder.records.size(), all, "ms",
              "share", "calls", "GFLOP/s");
  for (const KernelTotal &total : sorted)
    std::printf("%10.4f %5.1f%% %6zu %10.4g  %s (%s)\n", total.ms, all > 0 ? 100 * total.ms / all : 0, total.calls,
                total.ms > 0 ? total.flops / total.ms * 1e-6 : 0, total.kernel.c_str(), total.site.c_str());
  if (!options.trace.empty())
    writeTrace(options.trace, entry, recorder.records);
  return 0;
}

} // namespace ds
