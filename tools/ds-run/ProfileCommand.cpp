// ds-run profile: where the time of a call, or of a step of training, goes: by kernel, node, layer, operator and
// module, and as a trace of launches.
#include "runtime/core/MappedFile.h"
#include "tools/ds-run/Json.h"
#include "tools/ds-run/ProfileHtml.h"
#include "tools/ds-run/profile/ModuleTrace.h"
#include "tools/ds-run/profile/StepMeasure.h"

#include <cstdio>

namespace ds {
namespace {

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

// A package that trains is profiled by steps, unless one of its entries is asked for.
Measured measureAll(const Options &options, StepFacts &facts) {
  double seconds = options.duration.value_or(0.2);
  Options glance = options;
  glance.noVerify = true; // whoever measures verifies
  bool trains = options.entry.empty() && loadPackage(options.package, glance)->manifest().training;
  Measured measured = trains ? measureStep(options, seconds, facts) : measureCalls(options, seconds);
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

} // namespace

int profileCommand(const Options &options) {
  for (const std::string *path : {&options.trace, &options.json, &options.html})
    if (!path->empty())
      AtomicFile file(*path); // now, not after minutes of measurement, throws where it could not be written
  StepFacts facts;
  Measured measured = measureAll(options, facts);
  ProfileReport report = profileReport(measured, facts.title);
  const Manifest &manifest = measured.package->manifest();
  ModuleReportOptions shown = reportOptions(options, manifest);
  ModuleProfile modules =
      moduleProfile(manifest, measured.entry(), measured.launches, measured.meanLaunchMs, measured.peaks);
  std::printf("%zu launches, %.4g ms\n%10s %6s %6s %10s %8s %9s  kernel (first site)\n", report.launches,
              report.totalMs, "ms", "share", "calls", "GFLOP/s", "GB/s", "roofline");
  for (const Share &share : report.kernels) {
    auto perMs = [&](double amount) { return share.ms > 0 ? amount / share.ms : 0; };
    std::printf("%10.4f %5.1f%% %6zu %10.4g %8.4g %8.0f%%  %s (%s)\n", share.ms,
                report.totalMs > 0 ? 100 * share.ms / report.totalMs : 0, share.calls, perMs(share.flops) * 1e-6,
                perMs(share.memoryBytes + share.workspaceBytes) * 1e-6, 100 * perMs(share.rooflineMs),
                share.kernel.c_str(), share.site.c_str());
  }
  std::printf("%s", moduleReportText(modules, facts, shown).c_str());
  if (!options.trace.empty())
    writeText(options.trace, launchTrace(measured).dump() + "\n");
  if (!options.json.empty()) {
    Json json = asJson(report);
    json["profile"] = moduleReportJson(modules, facts, shown);
    writeText(options.json, json.dump(2) + "\n");
  }
  if (!options.html.empty())
    writeText(options.html, profileAsHtml(report, moduleReportHtml(modules, facts, shown)));
  return 0;
}

} // namespace ds
