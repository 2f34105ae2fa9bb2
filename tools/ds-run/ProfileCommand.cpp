// ds-run profile: where the time of a call goes, by kernel, node and layer, and as a trace of launches.
#include "tools/ds-run/Json.h"
#include "tools/ds-run/ProfileHtml.h"

#include <algorithm>
#include <cstdio>

namespace ds {
namespace {

void writeTrace(const std::string &path, const Measured &measured) {
  Json events = Json::array();
  int64_t origin = measured.launches.empty() ? 0 : measured.launches.front().start;
  for (size_t i = 0; i < measured.launches.size(); ++i) {
    const LaunchInfo &launch = measured.launchInfo(i);
    const LaunchWork &work = measured.launches[i];
    events.push_back({{"name", launch.site},
                      {"cat", launch.kernel},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", static_cast<double>(work.start - origin) * 1e-3},
                      {"dur", static_cast<double>(work.end - work.start) * 1e-3},
                      {"args", {{"kernel", launch.kernel}, {"grid", work.grid}, {"flops", work.flops}}}});
  }
  Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", events}};
  writeText(path, trace.dump() + "\n");
}

Json asJson(const ProfileReport &report) {
  Json json = {{"title", report.title},
               {"threads", report.threads},
               {"launches", report.launches},
               {"ms", report.totalMs},
               {"ceilings", ceilingsAsJson(report.ceilings)},
               {"kernels", Json::array()},
               {"nodes", Json::array()},
               {"layers", Json::array()}};
  for (const Share &share : report.kernels)
    json["kernels"].push_back(shareAsJson(share));
  for (size_t i = 0; i < report.nodes.size(); ++i) {
    json["nodes"].push_back(shareAsJson(report.nodes[i]));
    json["nodes"].back()["layer"] = report.nodeLayers[i];
  }
  for (const Share &share : report.layers)
    json["layers"].push_back({{"name", share.site},
                              {"calls", share.calls},
                              {"ms", share.ms},
                              {"flops", share.flops},
                              {"memory_bytes", share.memoryBytes},
                              {"workspace_bytes", share.workspaceBytes},
                              {"roofline_ms", share.rooflineMs}});
  return json;
}

} // namespace

int profileCommand(const Options &options) {
  Measured measured = measureCalls(options, options.duration.value_or(0.2));
  ProfileReport report = profileReport(measured);
  std::printf("%zu launches, %.4g ms\n%10s %6s %6s %10s %8s %9s  kernel (first site)\n", report.launches,
              report.totalMs, "ms", "share", "calls", "GFLOP/s", "GB/s", "roofline");
  for (const Share &share : report.kernels) {
    auto perMs = [&](double amount) { return share.ms > 0 ? amount / share.ms : 0; };
    std::printf("%10.4f %5.1f%% %6zu %10.4g %8.4g %8.0f%%  %s (%s)\n", share.ms,
                report.totalMs > 0 ? 100 * share.ms / report.totalMs : 0, share.calls, perMs(share.flops) * 1e-6,
                perMs(share.memoryBytes + share.workspaceBytes) * 1e-6, 100 * perMs(share.rooflineMs),
                share.kernel.c_str(), share.site.c_str());
  }
  if (!options.trace.empty())
    writeTrace(options.trace, measured);
  if (!options.json.empty())
    writeText(options.json, asJson(report).dump(2) + "\n");
  if (!options.html.empty())
    writeText(options.html, profileAsHtml(report));
  return 0;
}

} // namespace ds
