#include "tools/ds-run/profile/ModuleTrace.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/profile/ModuleNames.h"

namespace ds {
namespace {

const char *nameOf(WorkRole role) {
  switch (role) {
  case WorkRole::Forward: return "forward";
  case WorkRole::Backward: return "backward";
  case WorkRole::Recompute: return "recompute";
  case WorkRole::Update: return "update";
  }
  return "";
}

class Trace {
public:
  explicit Trace(const Measured &measured)
      : measured(measured), names(measured.package->manifest(), measured.entry()),
        origin(measured.launches.empty() ? 0 : measured.launches.front().start) {}

  Json run() {
    for (size_t i = 0; i < measured.launches.size(); ++i) {
      const NodeWork *most = mainWork(i);
      enter(most ? names.pathOf(*most) : ModulePath(), i);
      addLaunch(i, most);
    }
    enter({}, measured.launches.size());
    return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  }

private:
  struct Open {
    std::string name;
    int64_t start;
  };

  const NodeWork *mainWork(size_t i) const {
    const std::vector<NodeWork> &work = measured.launchInfo(i).work;
    const NodeWork *most = nullptr;
    int64_t greatest = -1;
    for (const NodeWork &part : work)
      if (int64_t flops = part.flops.evaluate(measured.launches[i].symbols); flops > greatest) {
        greatest = flops;
        most = &part;
      }
    return most;
  }

  double microseconds(int64_t time) const { return static_cast<double>(time - origin) * 1e-3; }

  // Closes the modules that the launch is not in, ends of inner ones first, and opens the others.
  void enter(const ModulePath &path, size_t launch) {
    size_t same = 0;
    while (same < path.size() && same < open.size() && path[same] == open[same].name)
      ++same;
    int64_t end = launch > 0 ? measured.launches[launch - 1].end : origin;
    for (; open.size() > same; open.pop_back())
      events.push_back({{"name", open.back().name},
                        {"cat", "module"},
                        {"ph", "X"},
                        {"pid", 0},
                        {"tid", 0},
                        {"ts", microseconds(open.back().start)},
                        {"dur", static_cast<double>(end - open.back().start) * 1e-3}});
    for (size_t i = same; i < path.size(); ++i)
      open.push_back({path[i], measured.launches[launch].start});
  }

  void addLaunch(size_t i, const NodeWork *most) {
    const LaunchInfo &launch = measured.launchInfo(i);
    const LaunchWork &work = measured.launches[i];
    Json nodes = Json::array();
    for (const NodeWork &part : launch.work)
      nodes.push_back(concat(part.node, part.parameter, part.part, " (", part.op, ", ", nameOf(part.role), ")"));
    events.push_back({{"name", launch.site},
                      {"cat", launch.kernel},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", microseconds(work.start)},
                      {"dur", static_cast<double>(work.end - work.start) * 1e-3},
                      {"args",
                       {{"kernel", launch.kernel},
                        {"grid", work.grid},
                        {"flops", work.flops},
                        {"role", most ? nameOf(most->role) : ""},
                        {"nodes", std::move(nodes)}}}});
  }

  const Measured &measured;
  ModuleNames names;
  int64_t origin;
  std::vector<Open> open;
  Json events = Json::array();
};

} // namespace

Json launchTrace(const Measured &measured) { return Trace(measured).run(); }

} // namespace ds
