// The report of a profile by modules: what a step or a call is, its totals, the largest modules of each depth, the
// tree.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_MODULEREPORT_H
#define DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_MODULEREPORT_H

#include "tools/ds-run/Json.h"
#include "tools/ds-run/profile/ModuleProfile.h"

namespace ds {

// What was profiled, besides its launches.
struct StepFacts {
  std::string title;   // "step 5 of bert.onnx"
  bool trains = false; // a step of training; else a call
  int64_t batch = 0;   // samples of the largest micro-batch
  int64_t microBatches = 1, samples = 0;
  unsigned threads = 1;
  int64_t dataParallel = 1, modelParallel = 1; // ranks
  double wallMs = 0;                           // of the whole step, without reading data
  double betweenMs = 0;                        // of that, outside of launches
  std::optional<double> unwatchedMs;           // the median of others, which nobody watched
};

struct ModuleReportOptions {
  int64_t depth = -1; // of the largest modules; -1: all
  int64_t top = 1;    // modules of each depth
  bool isDetailed = true;
};

// "1.25 G", "300"; "2.40 ms"; "31.20 GFLOPS".
std::string countText(double count);
std::string timeText(double ms);
std::string rateText(double operationsPerSecond);

// Modules of one kind at one depth.
struct ModuleClass {
  std::string name;
  double parameters = 0, macs = 0, ms = 0;
};
std::vector<ModuleClass> classesAt(const Module &root, size_t depth);
// The `top` ones by a quantity, the largest first.
std::vector<ModuleClass> largestOf(std::vector<ModuleClass> classes, double ModuleClass::*quantity, int64_t top);
// The last depth that the report shows.
size_t lastDepth(const ModuleProfile &profile, const ModuleReportOptions &options);

std::string moduleReportText(const ModuleProfile &profile, const StepFacts &facts, const ModuleReportOptions &options);
// {"step": ..., "operators": [...], "depths": [...], "modules": {...}}; the tree only where it is detailed.
Json moduleReportJson(const ModuleProfile &profile, const StepFacts &facts, const ModuleReportOptions &options);
// Sections of a page (ProfileHtml.h).
std::string moduleReportHtml(const ModuleProfile &profile, const StepFacts &facts, const ModuleReportOptions &options);

} // namespace ds
#endif
