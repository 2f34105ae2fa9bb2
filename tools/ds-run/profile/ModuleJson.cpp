#include "tools/ds-run/profile/ModuleReport.h"

namespace ds {

static Json byRole(const std::array<double, workRoles> &values) {
  static const char *const names[] = {"forward", "backward", "recompute", "update"};
  Json json = Json::object();
  for (size_t role = 0; role < workRoles; ++role)
    json[names[role]] = values[role];
  return json;
}

static Json figuresJson(const Figures &figures) {
  return {{"parameters", figures.parameters}, {"macs", byRole(figures.macs)},  {"flops", byRole(figures.flops)},
          {"ms", byRole(figures.ms)},         {"flops_per_s", figures.rate()}, {"of_peak", figures.ofPeak()}};
}

static Json moduleJson(const Module &module) {
  Json json = {{"name", module.name}, {"total", figuresJson(module.total)}, {"self", figuresJson(module.self)}};
  json["children"] = Json::array();
  for (const Module &child : module.children)
    json["children"].push_back(moduleJson(child));
  return json;
}

Json moduleReportJson(const ModuleProfile &profile, const StepFacts &facts, const ModuleReportOptions &options) {
  Json json = {{"title", facts.title},
               {"trains", facts.trains},
               {"world_size", facts.dataParallel * facts.modelParallel},
               {"data_parallel", facts.dataParallel},
               {"model_parallel", facts.modelParallel},
               {"batch", facts.batch},
               {"micro_batches", facts.microBatches},
               {"samples", facts.samples},
               {"threads", facts.threads},
               {"ms", facts.wallMs},
               {"between_launches_ms", facts.betweenMs},
               {"unwatched_ms", orNull(facts.unwatchedMs)},
               {"modules_by", profile.areNodesNamed ? "nodes" : "parameters"},
               {"total", figuresJson(profile.root.total)},
               {"peaks", Json::object()},
               {"operators", Json::array()},
               {"depths", Json::array()}};
  for (const auto &[arithmetic, peak] : profile.peaks)
    json["peaks"][arithmetic] = peak;
  for (const OperatorFigures &row : profile.operators) {
    json["operators"].push_back({{"op", row.op}, {"nodes", row.nodes}});
    json["operators"].back().update(figuresJson(row.figures));
  }
  size_t last = lastDepth(profile, options);
  for (size_t depth = 0; depth <= last; ++depth) {
    Json level = {{"depth", depth}};
    for (auto [key, value] : {std::pair("parameters", &ModuleClass::parameters), std::pair("macs", &ModuleClass::macs),
                              std::pair("ms", &ModuleClass::ms)}) {
      level[key] = Json::array();
      for (const ModuleClass &row : largestOf(classesAt(profile.root, depth), value, options.top))
        level[key].push_back({{"class", row.name}, {key, row.*value}});
    }
    json["depths"].push_back(std::move(level));
  }
  if (options.isDetailed)
    json["modules"] = moduleJson(profile.root);
  return json;
}

} // namespace ds
