#include "runtime/training/TrainingRun.h"

#include "runtime/core/Error.h"
#include "runtime/training/FaultFinder.h"

#include <chrono>
#include <cmath>
#include <limits>

namespace ds {

TrainingRun::TrainingRun(Trainer &trainer, const RunSettings &settings, BatchReader &reader)
    : trainer(trainer), schedule(settings.schedule), scaler(settings.lossScale), accumulation(settings.accumulation),
      reader(reader), lastScale(scaler.scale()) {
  if (accumulation > 1 && !trainer.accumulates())
    fail(ErrorCode::InvalidArgument, "gradient_accumulation_steps: found ", accumulation,
         ", expected 1: the package was compiled for one micro-batch a step");
  batches.resize(static_cast<size_t>(accumulation));
}

// "sample 17 of the data", of a micro-batch's row.
static RowName sampleNames(const Batch &batch) {
  return [&batch](int64_t row) {
    return concat("sample ",
                  static_cast<size_t>(row) < batch.samples.size() ? batch.samples[static_cast<size_t>(row)] : row,
                  " of the data");
  };
}

std::optional<StepRecord> TrainingRun::step() { return step(schedule.at(count - skippedCount)); }

std::optional<StepRecord> TrainingRun::step(const Rates &rates) {
  auto start = std::chrono::steady_clock::now(), before = start;
  auto lap = [&before] { // milliseconds since the last one
    auto last = before;
    before = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(before - last).count();
  };
  LoaderPosition place = reader.position();
  StepRecord record;
  StepResult result;
  lastScale = scaler.scale();
  try {
    // All micro-batches first: their number weighs each, and their labels are checked before anything is computed.
    int64_t samples = 0;
    for (used = 0; used < batches.size() && reader.next(batches[used]); ++used) {
      trainer.checkLabels(batches[used].views(), sampleNames(batches[used]));
      samples += static_cast<int64_t>(batches[used].samples.size());
    }
    if (used == 0)
      return std::nullopt;
    record.dataMs = lap();
    record.microBatches = static_cast<int64_t>(used);
    record.stepSamples = samples;
    for (size_t i = 0; i < used; ++i) {
      double share = static_cast<double>(batches[i].samples.size()) / static_cast<double>(samples);
      record.loss += share * trainer.microBatch(batches[i].views(), lastScale / static_cast<double>(used), i == 0,
                                                placeOf(count, i), observer);
    }
    record.microMs = lap();
    // A loss that is none may have finite gradients: such a step changes nothing, either.
    result = {std::numeric_limits<double>::quiet_NaN(), false};
    if (std::isfinite(record.loss))
      result = trainer.update({rates.lr, rates.momentum, count - skippedCount + 1, lastScale}, observer);
    record.updateMs = lap();
    sampleCount += samples;
  } catch (...) {
    reader.seek(place);
    trainer.forgetGradients();
    throw;
  }
  record.step = count++;
  record.lr = rates.lr;
  record.momentum = rates.momentum;
  record.gradNorm = result.gradNorm;
  record.overflowed = !result.isFinite;
  record.samples = sampleCount;
  LossScaler::Outcome outcome = scaler.update(record.overflowed);
  record.isHopeless = record.overflowed && (!scaler.isDynamic() || outcome == LossScaler::Outcome::AtMinimum);
  record.skipped = skippedCount += record.overflowed ? 1 : 0;
  record.lossScale = scaler.scale();
  record.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return record;
}

RandomPlace TrainingRun::placeOf(int64_t step, size_t micro) const {
  return {reader.sampler().seed(), step, static_cast<int64_t>(micro)};
}

// "tensor 'x', which was read, holds nan in sample 3 of the data", of the first element for which `isFault` holds.
static std::string findRead(const Dataset &data, const Batch &batch, bool (*isFault)(double)) {
  for (size_t field = 0; field < batch.tensors.size(); ++field) {
    TensorView view = batch.tensors[field].view();
    if (!isFloat(view.type))
      continue;
    int64_t count = elementCount(view.shape), rows = view.shape.empty() ? 1 : view.shape[0];
    for (int64_t at = 0; at < count; ++at)
      if (double value = loadDouble(view.type, view.data, static_cast<size_t>(at)); isFault(value))
        return concat("tensor '", data.fields()[field].name, "', which was read, holds ", value, " in ",
                      sampleNames(batch)(at / std::max<int64_t>(count / std::max<int64_t>(rows, 1), 1)));
  }
  return "";
}

std::string TrainingRun::findFault(const OperatorOf &operatorOf) {
  std::string step = concat("step ", count - 1, ": ");
  // What was read comes before what was computed of it. An infinity may be a mask, which is no fault by itself.
  for (size_t i = 0; i < used; ++i)
    if (std::string read = findRead(reader.data(), batches[i], [](double x) { return std::isnan(x); }); !read.empty())
      return concat(step, read, ", ", batches[i].where());
  // Each by itself: sums of gradients hold the faults of others, and those of the step that went wrong.
  auto replay = [&](size_t i, bool isFirst, LaunchObserver *observer) {
    if (isFirst)
      trainer.zeroGradients();
    trainer.microBatch(batches[i].views(), lastScale / static_cast<double>(used), isFirst, placeOf(count - 1, i),
                       observer);
  };
  std::string infinite;
  for (size_t i = 0; i < used; ++i) {
    FaultFinder finder(operatorOf);
    replay(i, /*isFirst=*/true, &finder);
    if (finder.found().empty() || (!finder.isNan() && !infinite.empty()))
      continue;
    std::string read = findRead(reader.data(), batches[i], [](double x) { return std::isinf(x); });
    std::string found = concat(step, read, read.empty() ? "" : "; ", finder.found(), ", ", batches[i].where());
    if (finder.isNan())
      return found;
    infinite = found; // perhaps of a mask: a NaN of a later micro-batch says more
  }
  if (!infinite.empty())
    return infinite;
  for (size_t i = 0; i < used; ++i)
    replay(i, i == 0, nullptr);
  auto [name, greatest] = trainer.greatestGradient();
  return concat(step, "the squares of all gradients add up to no finite number: the greatest element, ", greatest,
                ", is in the gradient of '", name, "'");
}

TrainingProgress TrainingRun::progress() const {
  TrainingProgress progress;
  progress.step = count;
  progress.samples = sampleCount;
  progress.loader = reader.position();
  progress.seed = reader.sampler().seed();
  progress.lossScale = scaler.state();
  progress.trainer = {{"skipped", skippedCount},
                      {"shuffled", reader.sampler().isShuffled()},
                      {"data_samples", reader.data().samples()}};
  return progress;
}

std::vector<CheckpointPart> TrainingRun::parts() { return trainer.parts(); }

void TrainingRun::restore(Checkpoint &checkpoint) {
  const TrainingProgress &progress = checkpoint.progress();
  int64_t samples = progress.trainer.value("data_samples", reader.data().samples());
  if (samples != reader.data().samples())
    fail(ErrorCode::InvalidArgument, checkpoint.path(), ": was training on ", samples, " samples, found ",
         reader.data().samples(), " in the data");
  trainer.requireAll(checkpoint);
  LossScaler restored = scaler;
  restored.restore(progress.lossScale);
  reader.seek(progress.loader);
  trainer.session().withStates([&](StateStore &states) { states.restore(checkpoint); });
  scaler = restored;
  count = progress.step;
  sampleCount = progress.samples;
  skippedCount = progress.trainer.value("skipped", int64_t(0));
}

} // namespace ds
