#include "tools/ds-run/profile/StepMeasure.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace ds {

ModuleReportOptions reportOptions(const config::FlopsProfilerConfig &config) {
  return {config.depth, config.top, config.isDetailed};
}

static bool isGiven(const Options &options) { return !options.inputs.empty() || !options.inputsFrom.empty(); }

// The dimension that is the first of every tensor of a micro-batch, by name.
static std::string batchDimension(const std::vector<TensorInfo> &fields) {
  std::set<std::string> firsts;
  for (const TensorInfo &field : fields)
    firsts.insert(field.shape.empty() ? "" : field.shape[0].text());
  bool isOne = firsts.size() == 1 && !fields.empty() && fields[0].shape[0].symbols().size() == 1;
  return isOne ? *firsts.begin() : "";
}

// The tensors of a micro-batch in the trainer's order: the entry also has inputs that the trainer gives.
static std::vector<Tensor> gatherBatch(Trainer &trainer, const Options &options, const Pins &pins,
                                       std::vector<std::string> &madeUp) {
  EntryInfo fields = trainer.session().entry(trainingEntry(trainer.package(), "micro"));
  fields.inputs = trainer.batch();
  return gatherInputs(fields, options, pins, 0, &madeUp);
}

Measured measureStep(const Options &options, const Amount &amount, StepFacts &facts) {
  Measured result;
  result.package = loadPackage(options.package, options);
  config::TrainingConfig config = config::fromJson(result.package->manifest().training->config);
  SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  Trainer trainer(result.package, sessionOptions);
  result.entryIndex = trainingEntry(*result.package, "micro");
  Pins pins = parsePins(options.dims);
  std::string batch = batchDimension(trainer.batch());
  if (!isGiven(options) && !batch.empty() && !pins.count(batch))
    pins[batch] = config.microBatch;
  result.dims.assign(pins.begin(), pins.end());
  std::vector<std::string> madeUp;
  std::vector<Tensor> inputs = gatherBatch(trainer, options, pins, madeUp);
  std::vector<TensorView> views = viewsOf(inputs);
  int64_t micros = trainer.accumulates() ? config.accumulation : 1;
  std::optional<BitSchedule> widths; // weights are rounded, however long that takes, and to the same in each step
  if (trainer.widths()) {
    QuantizationSettings rounded = config.quantization;
    rounded.offset = 0;
    widths.emplace(rounded, trainer.widths()->blocks()).advance();
  }
  bool isFirst = true, wasFinite = true;
  measure(
      [&](LaunchObserver *observer) {
        trainer.setWidths(widths);
        for (int64_t i = 0; i < micros; ++i)
          trainer.microBatch(views, 1.0 / static_cast<double>(micros), {i == 0, i + 1 == micros},
                             {options.seed.value_or(0), 0, i}, {}, observer);
        StepResult step = trainer.update({0, config.optimizer.momentum, 1, 1}, observer);
        wasFinite &= step.isFinite;
        if (std::exchange(isFirst, false))
          noteRandomInputs(madeUp, options);
      },
      trainer.session().threads(), amount, result);
  if (!wasFinite)
    std::fprintf(stderr, "ds-run: warning: gradients are no finite numbers: the update that was measured changes "
                         "nothing; other inputs may help\n");
  facts.title = "a step of " + result.package->manifest().model;
  facts.trains = true;
  facts.batch = views.empty() || views[0].shape.empty() ? 1 : views[0].shape[0];
  facts.microBatches = micros;
  facts.samples = micros * facts.batch;
  return result;
}

StepProfiler::StepProfiler(Trainer &trainer, const config::FlopsProfilerConfig &config)
    : trainer(trainer), config(config), recorder(trainer.package(), /*counts=*/false) {}

void StepProfiler::before(TrainingRun &run) {
  if (config.isEnabled && run.steps() == config.step)
    run.observe(&recorder);
}

std::string StepProfiler::after(TrainingRun &run, const StepRecord &record) {
  if (recorder.launches.empty())
    return "";
  run.observe(nullptr);
  isDone = true;
  std::vector<LaunchWork> launches = std::move(recorder.launches);
  recorder.launches.clear();
  std::vector<double> launchMs;
  double betweenMs = record.milliseconds - record.dataMs, bytes = 0;
  for (const LaunchWork &launch : launches) {
    launchMs.push_back(static_cast<double>(launch.end - launch.start) * 1e-6);
    betweenMs -= launchMs.back();
    for (const NodeWork &work : launch.entry->launches[launch.site].work)
      bytes += static_cast<double>(work.bytes.evaluate(launch.symbols));
  }
  // As much memory as the step moves, but no more than is needed to see that no cache holds it.
  constexpr double mostBytes = 512.0 * 1024 * 1024;
  ThreadPool pool(trainer.session().threads());
  CeilingMeter meter(pool, static_cast<size_t>(std::clamp(bytes, 4096.0, mostBytes)));
  constexpr int rounds = 3;
  for (int round = 0; round < rounds; ++round)
    meter.measure();
  StepFacts facts;
  facts.title = concat("step ", record.step, " of ", trainer.package().manifest().model);
  facts.trains = true;
  for (const Batch &batch : run.lastBatches()) {
    auto samples = static_cast<int64_t>(batch.samples.size());
    facts.batch = std::max(facts.batch, samples);
  }
  facts.microBatches = record.microBatches;
  facts.samples = record.stepSamples;
  facts.threads = trainer.session().threads();
  facts.wallMs = record.milliseconds - record.dataMs;
  facts.betweenMs = betweenMs;
  const Package &package = trainer.package();
  const EntryInfo &order = package.variant().entries[trainingEntry(package, "micro")];
  ModuleProfile profile = moduleProfile(package.manifest(), order, launches, launchMs, meter.best());
  return moduleReportText(profile, facts, reportOptions(config));
}

std::string StepProfiler::reasonForNone() const {
  if (!config.isEnabled || isDone)
    return "";
  return concat("flops_profiler.profile_step: step ", config.step, " was not among the steps of this run: no profile");
}

} // namespace ds
