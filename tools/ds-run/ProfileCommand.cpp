// ds-run profile: where the time of a call, or of a step of training, goes: by kernel, node, layer, operator and
// module, and as a trace of launches.
#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Text.h"
#include "tools/ds-run/Json.h"
#include "tools/ds-run/ProfileHtml.h"
#include "tools/ds-run/profile/ModuleTrace.h"
#include "tools/ds-run/profile/StepMeasure.h"

#include <cstdio>

namespace ds {
namespace {

Json launchesAsJson(const Measured &measured, const ProfileReport &report) {
  Json list = Json::array();
  int64_t origin = measured.launches.empty() ? 0 : measured.launches.front().start;
  for (size_t i = 0; i < measured.launches.size(); ++i) {
    const LaunchWork &work = measured.launches[i];
    const LaunchInfo &info = measured.launchInfo(i);
    std::vector<std::string> nodes, values;
    for (const NodeWork &part : info.work)
      if (!part.node.empty())
        nodes.push_back(part.node);
    for (const LaunchResult &result : info.results)
      if (!result.value.empty())
        values.push_back(result.value);
    list.push_back({{"entry", work.entry->name},
                    {"kernel", info.kernel},
                    {"site", info.site},
                    {"nodes", nodes},
                    {"values", values},
                    {"layer", report.launchLayers[i]},
                    {"arithmetic", info.arithmetic},
                    {"grid", work.grid},
                    {"start_ms", static_cast<double>(work.start - origin) * 1e-6},
                    {"ms", measured.launchMs[i]},
                    {"min_ms", measured.launchLeastMs[i]},
                    {"max_ms", measured.launchMostMs[i]},
                    {"flops", work.flops},
                    {"memory_bytes", work.memoryBytes},
                    {"workspace_bytes", work.workspaceBytes},
                    {"roofline_ms", rooflineOf(measured.ceilings, work, info.arithmetic)}});
  }
  return list;
}

Json asJson(const Measured &measured, const ProfileReport &report) {
  Json dims = Json::object();
  for (const auto &[name, size] : measured.dims)
    dims[name] = size;
  Json json = {{"title", report.title},
               {"threads", report.threads},
               {"dims", dims},
               {"calls", measured.watchedCalls},
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
  json["each_launch"] = launchesAsJson(measured, report);
  return json;
}

// A package that trains is profiled by steps, unless one of its entries is asked for.
Measured measureAll(const Options &options, StepFacts &facts) {
  Amount amount = amountOf(options, 0.2);
  amount.watchesAll = true;
  Options glance = options;
  glance.noVerify = true; // whoever measures verifies
  glance.weights.clear();
  bool trains = options.entry.empty() && loadPackage(options.package, glance)->manifest().training;
  Measured measured = trains ? measureStep(options, amount, facts) : measureCalls(options, amount);
  if (!trains)
    facts.title = concat(measured.package->manifest().model, ", entry ", measured.entry().name);
  facts.threads = measured.threads;
  facts.wallMs = facts.betweenMs = measured.watchedMs;
  for (double ms : measured.meanLaunchMs)
    facts.betweenMs -= ms;
  facts.unwatchedMs = measured.callMs();
  return measured;
}

// What the command line says, then what the package's configuration does.
ModuleReportOptions reportOptions(const Options &options, const Manifest &manifest) {
  config::FlopsProfilerConfig config;
  if (manifest.training)
    config = config::fromJson(manifest.training->config).flopsProfiler;
  return {options.moduleDepth.value_or(config.depth), options.topModules.value_or(config.top),
          options.detailed.value_or(config.isDetailed)};
}

void print(const Measured &measured, const ProfileReport &report, const std::string &modules) {
  std::printf("%zu launches, %.4g ms, medians of %zu calls\n%10s %6s %6s %10s %8s %9s  kernel (first site)\n",
              report.launches, report.totalMs, measured.watchedCalls, "ms", "share", "calls", "GFLOP/s", "GB/s",
              "roofline");
  for (const Share &share : report.kernels) {
    auto perMs = [&](double amount) { return share.ms > 0 ? amount / share.ms : 0; };
    std::printf("%10.4f %5.1f%% %6zu %10.4g %8.4g %8.0f%%  %s (%s)\n", share.ms,
                report.totalMs > 0 ? 100 * share.ms / report.totalMs : 0, share.calls, perMs(share.flops) * 1e-6,
                perMs(share.memoryBytes + share.workspaceBytes) * 1e-6, 100 * perMs(share.rooflineMs),
                share.kernel.c_str(), oneLine(share.site).c_str());
  }
  std::printf("%s", modules.c_str());
}

} // namespace

int profileCommand(const Options &options) {
  unsigned streamed = 0;
  for (const std::string *path : {&options.trace, &options.json, &options.html})
    if (*path == "-")
      ++streamed;
    else if (!path->empty())
      AtomicFile file(*path); // now, not after minutes of measurement, throws where it could not be written
  if (streamed > 1)
    fail(ErrorCode::InvalidArgument, "standard output, -, is for one of --json, --html and --trace, found ", streamed);
  StepFacts facts;
  Measured measured = measureAll(options, facts);
  ProfileReport report = profileReport(measured, facts.title);
  const Manifest &manifest = measured.package->manifest();
  ModuleReportOptions shown = reportOptions(options, manifest);
  ModuleProfile modules =
      moduleProfile(manifest, measured.entry(), measured.launches, measured.meanLaunchMs, measured.peaks);
  if (streamed == 0) // else that has standard output for itself
    print(measured, report, moduleReportText(modules, facts, shown));
  if (!options.trace.empty())
    writeText(options.trace, launchTrace(measured).dump() + "\n");
  if (!options.json.empty()) {
    Json json = asJson(measured, report);
    json["profile"] = moduleReportJson(modules, facts, shown);
    writeText(options.json, json.dump(2) + "\n");
  }
  if (!options.html.empty())
    writeText(options.html, profileAsHtml(report, moduleReportHtml(modules, facts, shown)));
  return 0;
}

} // namespace ds
