// A step of a package that trains, measured: micro-batches and the update behind them.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_STEPMEASURE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_PROFILE_STEPMEASURE_H

#include "frontends/config/Config.h"
#include "runtime/training/TrainingRun.h"
#include "tools/ds-run/Measure.h"
#include "tools/ds-run/profile/ModuleReport.h"

namespace ds {

// Steps of the package that the options name, on the inputs that they give or random ones, with a rate of 0: every step
// computes the same. Sizes that no option gives and that the first axis of all micro-batches is are the configured
// micro-batch. Entry of the result: that of micro-batches.
Measured measureStep(const Options &options, const Amount &amount, StepFacts &facts);

// Watches one step of a run; reports on it.
class StepProfiler {
public:
  StepProfiler(Trainer &trainer, const config::FlopsProfilerConfig &config);

  // Before and after each step. The report of the step that is asked for; empty after all others.
  void before(TrainingRun &run);
  std::string after(TrainingRun &run, const StepRecord &record);
  // At the end: why there is no report; empty where there is one.
  std::string reasonForNone() const;

private:
  Trainer &trainer;
  const config::FlopsProfilerConfig &config;
  CallRecorder recorder;
  bool isDone = false;
};

ModuleReportOptions reportOptions(const config::FlopsProfilerConfig &config);

} // namespace ds
#endif
