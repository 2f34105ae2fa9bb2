#include "tools/ds-run/profile/ModuleProfile.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

namespace ds {

static double sumOf(const std::array<double, workRoles> &values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double Figures::allMacs() const { return sumOf(macs); }
double Figures::allFlops() const { return sumOf(flops); }
double Figures::allMs() const { return sumOf(ms); }
double Figures::rate() const { return allMs() > 0 ? rated / allMs() * 1e3 : 0; }
double Figures::ofPeak() const { return allMs() > 0 ? peakMs / allMs() : 0; }

Figures &Figures::operator+=(const Figures &other) {
  parameters += other.parameters;
  for (size_t role = 0; role < workRoles; ++role) {
    macs[role] += other.macs[role];
    flops[role] += other.flops[role];
    ms[role] += other.ms[role];
  }
  rated += other.rated;
  peakMs += other.peakMs;
  return *this;
}

std::vector<double> shareTime(double ms, const std::vector<NodeDemand> &demands) {
  double atPeak = 0, rooflines = 0;
  for (const NodeDemand &demand : demands) {
    atPeak += demand.peakMs;
    rooflines += std::max(demand.peakMs, demand.memoryMs);
  }
  std::vector<double> shares;
  for (const NodeDemand &demand : demands) {
    double roofline = std::max(demand.peakMs, demand.memoryMs);
    double part = rooflines > 0 ? roofline / rooflines : 1 / static_cast<double>(demands.size());
    // What is faster than the peak, as noise is, or skips what is counted, is shared by operations alone.
    shares.push_back(atPeak > ms ? ms * demand.peakMs / atPeak : demand.peakMs + (ms - atPeak) * part);
  }
  return shares;
}

namespace {

class ProfileBuilder {
public:
  ProfileBuilder(const Manifest &manifest, const EntryInfo &order, const Ceilings &ceilings)
      : manifest(manifest), names(manifest, order), ceilings(ceilings) {}

  ModuleProfile run(const std::vector<LaunchWork> &launches, const std::vector<double> &launchMs) {
    profile.root.name = manifest.model;
    profile.areNodesNamed = names.areOfNodes();
    for (size_t i = 0; i < launches.size(); ++i)
      add(launches[i], launchMs[i]);
    for (const ParameterInfo &parameter : manifest.parameters)
      moduleAt(names.pathOf(parameter)).self.parameters += static_cast<double>(parameter.elements);
    addUp(profile.root, 0);
    for (auto &[op, entry] : operators)
      profile.operators.push_back({op, entry.second.size(), entry.first});
    std::sort(profile.operators.begin(), profile.operators.end(), [](const auto &a, const auto &b) {
      return a.figures.allMs() != b.figures.allMs() ? a.figures.allMs() > b.figures.allMs() : a.op < b.op;
    });
    return std::move(profile);
  }

private:
  void add(const LaunchWork &work, double ms) {
    const LaunchInfo &launch = work.entry->launches[work.site];
    double peak = peakOf(ceilings, launch.arithmetic) * 1e6; // operations per millisecond
    notePeak(launch.arithmetic);
    std::vector<NodeWork> whole;
    if (launch.work.empty()) { // a package of an older compiler
      whole.emplace_back();
      whole.back().node = launch.site;
      whole.back().op = launch.kernel;
      whole.back().flops = launch.flops;
    }
    const std::vector<NodeWork> &parts = whole.empty() ? launch.work : whole;
    auto valueOf = [&](const SizeExpr &size) {
      return static_cast<double>(std::max<int64_t>(size.evaluate(work.symbols), 0));
    };
    std::vector<NodeDemand> demands;
    for (const NodeWork &part : parts)
      demands.push_back({valueOf(part.flops) / peak, valueOf(part.bytes) / ceilings.workingSetGBps * 1e-6});
    std::vector<double> shares = shareTime(ms, demands);
    for (size_t i = 0; i < parts.size(); ++i) {
      Figures figures;
      auto role = static_cast<size_t>(parts[i].role);
      figures.macs[role] = valueOf(parts[i].macs);
      figures.flops[role] = valueOf(parts[i].flops);
      figures.ms[role] = shares[i];
      figures.rated = parts[i].mayBeLess ? std::min(figures.flops[role], peak * shares[i]) : figures.flops[role];
      figures.peakMs = figures.rated / peak;
      moduleAt(names.pathOf(parts[i])).self += figures;
      auto &[sum, nodes] = operators[parts[i].op];
      sum += figures;
      nodes.insert(parts[i].node + parts[i].parameter + parts[i].part);
    }
  }

  void notePeak(const std::string &arithmetic) {
    std::string name = arithmetic.empty() ? "f32" : arithmetic;
    for (const auto &[known, peak] : profile.peaks)
      if (known == name)
        return;
    profile.peaks.emplace_back(name, peakOf(ceilings, arithmetic) * 1e9);
  }

  Module &moduleAt(const ModulePath &path) {
    Module *module = &profile.root;
    for (const std::string &name : path) {
      auto child = std::find_if(module->children.begin(), module->children.end(),
                                [&](const Module &other) { return other.name == name; });
      if (child == module->children.end())
        child = module->children.insert(child, {name, {}, {}, {}});
      module = &*child;
    }
    return *module;
  }

  void addUp(Module &module, size_t depth) {
    profile.depth = std::max(profile.depth, depth);
    // Parts of a step come after the model.
    std::vector<Module> modules, parts;
    for (Module &child : module.children)
      (child.name.rfind('(', 0) == 0 ? parts : modules).push_back(std::move(child));
    std::move(parts.begin(), parts.end(), std::back_inserter(modules));
    module.children = std::move(modules);
    module.total = module.self;
    for (Module &child : module.children) {
      addUp(child, depth + 1);
      module.total += child.total;
    }
  }

  const Manifest &manifest;
  ModuleNames names;
  const Ceilings &ceilings;
  ModuleProfile profile;
  std::map<std::string, std::pair<Figures, std::set<std::string>>> operators;
};

} // namespace

ModuleProfile moduleProfile(const Manifest &manifest, const EntryInfo &order, const std::vector<LaunchWork> &launches,
                            const std::vector<double> &launchMs, const Ceilings &ceilings) {
  return ProfileBuilder(manifest, order, ceilings).run(launches, launchMs);
}

} // namespace ds
