// What launches did and how long they took, by module of the model, by operator and by role.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_MODULEPROFILE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_MODULEPROFILE_H

#include "tools/ds-run/Work.h"
#include "tools/ds-run/profile/ModuleNames.h"

#include <array>

namespace ds {

struct Figures {
  double parameters = 0;
  std::array<double, workRoles> macs{}, flops{}, ms{}; // by role
  // For rates: operations, at most as many as the peak allows where masks hide some, and their time at the peak.
  double rated = 0, peakMs = 0;

  double macsOf(WorkRole role) const { return macs[static_cast<size_t>(role)]; }
  double flopsOf(WorkRole role) const { return flops[static_cast<size_t>(role)]; }
  double msOf(WorkRole role) const { return ms[static_cast<size_t>(role)]; }
  double allMacs() const;
  double allFlops() const;
  double allMs() const;
  // Operations per second, and which share of the measured peak that is.
  double rate() const;
  double ofPeak() const;
  Figures &operator+=(const Figures &other);
};

struct Module {
  std::string name;
  Figures self, total;          // total: self and those of the children, added up in order
  std::vector<Module> children; // in the order of the program
};

struct OperatorFigures {
  std::string op;
  size_t nodes = 0;
  Figures figures;
};

struct ModuleProfile {
  Module root;
  std::vector<OperatorFigures> operators; // the longest first
  size_t depth = 0;                       // levels below the root
  bool areNodesNamed = false;             // modules are those of nodes' names; else of parameters' names and operators
  std::vector<std::pair<std::string, double>> peaks; // of the arithmetic that was used, operations per second
};

// Times of launches in milliseconds. That of a launch which works for several nodes is shared among them: each gets
// what its operations take at the peak, and of the rest a part in proportion to its own roofline.
ModuleProfile moduleProfile(const Manifest &manifest, const EntryInfo &order, const std::vector<LaunchWork> &launches,
                            const std::vector<double> &launchMs, const Ceilings &ceilings);

// How the time of one launch is shared; the shares add up to `ms`.
struct NodeDemand {
  double peakMs = 0, memoryMs = 0; // what its operations, and its bytes, take at best
};
std::vector<double> shareTime(double ms, const std::vector<NodeDemand> &demands);

} // namespace ds
#endif
