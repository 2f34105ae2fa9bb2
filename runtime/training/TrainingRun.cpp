#include "runtime/training/TrainingRun.h"

#include "runtime/core/Error.h"
#include "runtime/training/Curvature.h"
#include "runtime/training/FaultFinder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace ds {

TrainingRun::TrainingRun(Trainer &trainer, const RunSettings &settings, BatchReader &reader)
    : trainer(trainer), schedule(settings.schedule), scaler(settings.lossScale),
      layerDrop(settings.layerDrop, trainer.layers().size()), accumulation(settings.accumulation),
      eigenvalue(settings.quantization.eigenvalue), reader(reader), lastScale(scaler.scale()) {
  layerCounts.ran.resize(layerDrop.blocks());
  if (accumulation > 1 && !trainer.accumulates())
    fail(ErrorCode::InvalidArgument, "gradient_accumulation_steps: found ", accumulation,
         ", expected 1: the package was compiled for one micro-batch a step");
  batches.resize(static_cast<size_t>(accumulation));
  trainer.setQuantization(settings.quantization);
  trainer.setRoundingSeed(reader.sampler().seed());
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
  LayerCounts counts = layerCounts;
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
      std::vector<LayerGate> gates = gatesOf(count, i);
      record.loss += share * trainer.microBatch(batches[i].views(), lastScale / static_cast<double>(used), i == 0,
                                                placeOf(count, i), gates, observer);
      counts.add(gates);
      record.blocks += std::count_if(gates.begin(), gates.end(), [](const LayerGate &gate) { return gate.runs; });
    }
    record.microMs = lap();
    // A loss that is none may have finite gradients: such a step changes nothing, either.
    result = {std::numeric_limits<double>::quiet_NaN(), false};
    if (std::isfinite(record.loss)) {
      findFactors(record);
      result = trainer.update({rates.lr, rates.momentum, count - skippedCount + 1, lastScale}, observer);
    }
    record.updateMs = lap();
    sampleCount += samples;
  } catch (...) {
    reader.seek(place);
    trainer.forgetGradients();
    throw;
  }
  layerCounts = counts;
  if (layerDrop.blocks() > 0) {
    record.theta = layerDrop.theta(count);
    record.keepRates = layerCounts.rates();
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
  if (const BitSchedule *widths = trainer.widths(); widths && widths->hasBegun())
    for (size_t i = 0; i < widths->blocks(); ++i)
      record.bits.push_back(widths->bits(i));
  record.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return record;
}

void TrainingRun::findFactors(StepRecord &record) {
  const BitSchedule *widths = trainer.widths();
  if (!eigenvalue.isEnabled || !widths || !widths->isAboutToDrop() || (count + 1) % eigenvalue.resolution != 0)
    return;
  record.eigenvalues = layerEigenvalues(trainer, batches[used - 1].views(), eigenvalue, lastScale,
                                        reader.sampler().seed() + static_cast<uint64_t>(count));
  trainer.setFactors(periodFactors(record.eigenvalues, widths->blocks()));
}

RandomPlace TrainingRun::placeOf(int64_t step, size_t micro) const {
  return {reader.sampler().seed(), step, static_cast<int64_t>(micro)};
}

std::vector<LayerGate> TrainingRun::gatesOf(int64_t step, size_t micro) const {
  return layerDrop.draw(placeOf(step, micro));
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
                       gatesOf(count - 1, i), observer);
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
  if (layerDrop.blocks() > 0) {
    nlohmann::json last = nlohmann::json::array(); // of each micro-batch of the last step: which blocks ran
    for (size_t micro = 0; count > 0 && micro < used; ++micro) {
      last.emplace_back(nlohmann::json::array());
      for (const LayerGate &gate : gatesOf(count - 1, micro))
        last.back().push_back(gate.runs);
    }
    progress.trainer["layers"] = {
        {"micro_batches", layerCounts.microBatches}, {"ran", layerCounts.ran}, {"gates", last}};
  }
  trainer.keepWidths(progress);
  return progress;
}

std::vector<CheckpointPart> TrainingRun::parts() { return trainer.parts(); }

// Which blocks ran so far; a checkpoint of a run without gates has counted none.
static LayerCounts countsIn(const Checkpoint &checkpoint, size_t blocks) {
  LayerCounts counts;
  counts.ran.resize(blocks);
  auto layers = checkpoint.progress().trainer.find("layers");
  if (layers == checkpoint.progress().trainer.end() || blocks == 0)
    return counts;
  auto isCount = [](const nlohmann::json &value) { return value.is_number_integer() && value.get<int64_t>() >= 0; };
  bool isLegal = layers->is_object() && layers->contains("micro_batches") && isCount((*layers)["micro_batches"]) &&
                 layers->contains("ran") && (*layers)["ran"].is_array();
  if (isLegal)
    for (const nlohmann::json &ran : (*layers)["ran"])
      isLegal = isLegal && isCount(ran) && ran.get<int64_t>() <= (*layers)["micro_batches"].get<int64_t>();
  if (!isLegal)
    fail(ErrorCode::BadFile, checkpoint.path(), ": trainer.layers: found ", layers->dump(),
         ", expected micro_batches and, of each block, in how many it ran");
  if ((*layers)["ran"].size() != blocks)
    fail(ErrorCode::InvalidArgument, checkpoint.path(), ": was training ", (*layers)["ran"].size(),
         " blocks that may be dropped, the package has ", blocks);
  counts.microBatches = (*layers)["micro_batches"].get<int64_t>();
  for (size_t block = 0; block < blocks; ++block)
    counts.ran[block] = (*layers)["ran"][block].get<int64_t>();
  return counts;
}

void TrainingRun::restore(Checkpoint &checkpoint) {
  const TrainingProgress &progress = checkpoint.progress();
  int64_t samples = progress.trainer.value("data_samples", reader.data().samples());
  if (samples != reader.data().samples())
    fail(ErrorCode::InvalidArgument, checkpoint.path(), ": was training on ", samples, " samples, found ",
         reader.data().samples(), " in the data");
  trainer.requireAll(checkpoint);
  LayerCounts counts = countsIn(checkpoint, layerDrop.blocks());
  LossScaler restored = scaler;
  restored.restore(progress.lossScale);
  std::optional<BitSchedule> widths = trainer.widthsIn(checkpoint);
  if (std::string wrong = widths ? trainer.widths()->difference(*widths) : ""; !wrong.empty())
    fail(ErrorCode::InvalidArgument, "quantize_training: ", wrong, ", as ", checkpoint.path(), " was trained with");
  reader.seek(progress.loader);
  trainer.session().withStates([&](StateStore &states) { states.restore(checkpoint); });
  trainer.setWidths(std::move(widths));
  scaler = restored;
  layerCounts = counts;
  count = progress.step;
  sampleCount = progress.samples;
  skippedCount = progress.trainer.value("skipped", int64_t(0));
}

} // namespace ds
