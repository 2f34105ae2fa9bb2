#include "runtime/training/TrainingRun.h"

#include "runtime/core/Error.h"
#include "runtime/training/Curvature.h"
#include "runtime/training/FaultFinder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace ds {

TrainingRun::TrainingRun(Trainer &trainer, const RunSettings &settings, BatchReader &reader, Ranks &ranks)
    : trainer(trainer), schedule(settings.schedule), scaler(settings.lossScale),
      layerDrop(settings.layerDrop, trainer.layers().size()), accumulation(settings.accumulation),
      eigenvalue(settings.quantization.eigenvalue), reader(reader), ranks(ranks), lastScale(scaler.scale()) {
  layerCounts.ran.resize(layerDrop.blocks());
  if (accumulation > 1 && !trainer.accumulates())
    fail(ErrorCode::InvalidArgument, "gradient_accumulation_steps: found ", accumulation,
         ", expected 1: the package was compiled for one micro-batch a step");
  if (settings.predivide != 1 && ranks.world() > 1)
    shareOfRanks = ranks.world() / settings.predivide;
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

int64_t TrainingRun::readBatches() {
  int64_t samples = 0;
  places.clear();
  const size_t most = static_cast<size_t>(accumulation) * ranks.world();
  while (places.size() < most) {
    std::optional<BatchPlace> place = reader.pass();
    if (!place)
      break;
    places.push_back(*place);
    samples += place->samples;
  }
  batches.resize(rounds());
  for (size_t round = 0; round < batches.size(); ++round) {
    reader.read(places[batchOf(round).first], batches[round]);
    trainer.checkLabels(batches[round].views(), sampleNames(batches[round]));
  }
  return samples;
}

std::pair<size_t, bool> TrainingRun::batchOf(size_t round) const {
  size_t first = round * ranks.world(), own = first + ranks.rank();
  return own < places.size() ? std::pair(own, true) : std::pair(first, false);
}

void TrainingRun::averageStatistics() {
  if (ranks.world() == 1 || trainer.statistics().empty())
    return;
  std::vector<Tensor> own = trainer.movedStatistics();
  std::string bytes;
  for (const Tensor &tensor : own)
    bytes.append(reinterpret_cast<const char *>(tensor.data()), tensor.bytes());
  std::string all(bytes.size() * ranks.world(), '\0');
  ranks.gather("running statistics", bytes.data(), bytes.size(), all.data());
  size_t offset = 0;
  for (Tensor &tensor : own) {
    for (size_t i = 0; i < static_cast<size_t>(tensor.count()); ++i) {
      double sum = 0;
      for (unsigned rank = 0; rank < ranks.world(); ++rank) {
        // A rank without a micro-batch has moved nothing that counts.
        size_t batches = (places.size() + ranks.world() - 1 - rank) / ranks.world();
        if (batches > 0)
          sum += static_cast<double>(batches) * loadDouble(tensor.getType(), &all[rank * bytes.size() + offset], i);
      }
      storeDouble(tensor.getType(), tensor.data(), i, sum / static_cast<double>(places.size()));
    }
    offset += tensor.bytes();
  }
  trainer.setMovedStatistics(own);
}

std::vector<double> TrainingRun::runBatches(LayerCounts &counts, StepRecord &record) {
  std::vector<double> own(rounds());
  // Behind the warm-up of a 1-bit optimizer gradients stay this rank's own.
  bool sends = !trainer.isFrozenAt(count - skippedCount + 1);
  for (size_t round = 0; round < rounds(); ++round) {
    auto [micro, isCounted] = batchOf(round);
    std::vector<LayerGate> gates = gatesOf(count, round);
    bool restores = !isCounted && !trainer.statistics().empty();
    std::vector<Tensor> before = restores ? trainer.movedStatistics() : std::vector<Tensor>();
    own[round] =
        trainer.microBatch(batches[round].views(), isCounted ? weight() : 0,
                           {round == 0, sends && round + 1 == rounds()}, placeOf(count, micro), gates, observer);
    if (restores)
      trainer.setMovedStatistics(before);
    auto running = std::count_if(gates.begin(), gates.end(), [](const LayerGate &gate) { return gate.runs; });
    for (size_t k = round * ranks.world(); k < std::min(places.size(), (round + 1) * ranks.world()); ++k) {
      counts.add(gates);
      record.blocks += running;
    }
  }
  std::vector<double> all = ranks.gatherValues("losses", own), losses;
  for (size_t micro = 0; micro < places.size(); ++micro)
    losses.push_back(all[micro % ranks.world() * rounds() + micro / ranks.world()]);
  return losses;
}

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
  ranks.setStep(count);
  try {
    // All micro-batches first: their number weighs each, and their labels are checked before anything is computed.
    int64_t samples = readBatches();
    if (samples == 0)
      return std::nullopt;
    record.dataMs = lap();
    record.microBatches = static_cast<int64_t>(places.size());
    record.stepSamples = samples;
    std::vector<double> losses = runBatches(counts, record);
    for (size_t micro = 0; micro < losses.size(); ++micro)
      record.loss += static_cast<double>(places[micro].samples) / static_cast<double>(samples) * losses[micro];
    record.microMs = lap();
    // A loss that is none may have finite gradients: such a step changes nothing, either.
    result = {std::numeric_limits<double>::quiet_NaN(), false};
    if (std::isfinite(record.loss)) {
      findFactors(record);
      averageStatistics();
      result = trainer.update({rates.lr, rates.momentum, count - skippedCount + 1, scaleOfUpdate()}, observer);
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
  record.isFrozen = result.isFrozen;
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
  // Of the step's last micro-batch, whoever it is: all ranks must come to the same widths.
  Batch last;
  reader.read(places.back(), last);
  record.eigenvalues = layerEigenvalues(trainer, last.views(), eigenvalue, lastScale,
                                        reader.sampler().seed() + static_cast<uint64_t>(count));
  trainer.setFactors(periodFactors(record.eigenvalues, widths->blocks()));
}

RandomPlace TrainingRun::placeOf(int64_t step, size_t micro) const {
  return {reader.sampler().seed(), step, static_cast<int64_t>(micro)};
}

std::vector<LayerGate> TrainingRun::gatesOf(int64_t step, size_t round) const {
  return layerDrop.draw(placeOf(step, round));
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

// The first text that is not empty in the order of micro-batches: `own` are those of this rank's rounds.
static std::string firstOfAll(Ranks &ranks, const std::string &what, const std::vector<std::string> &own) {
  std::vector<std::vector<std::string>> all;
  size_t rounds = own.size();
  for (size_t round = 0; round < rounds; ++round)
    all.push_back(ranks.gatherTexts(what, own[round]));
  for (const std::vector<std::string> &round : all)
    for (const std::string &text : round)
      if (!text.empty())
        return text;
  return "";
}

void TrainingRun::replay(size_t round, bool isFirst, LaunchObserver *watching) {
  if (isFirst)
    trainer.zeroGradients();
  auto [micro, isCounted] = batchOf(round);
  trainer.microBatch(batches[round].views(), isCounted ? weight() : 0, {isFirst, /*isLast=*/false},
                     placeOf(count - 1, micro), gatesOf(count - 1, round), watching);
}

// What was read comes before what was computed of it. An infinity may be a mask, which is no fault by itself.
std::string TrainingRun::findInData() const {
  std::vector<std::string> own(rounds());
  for (size_t round = 0; round < rounds(); ++round)
    if (std::string read = findRead(reader.data(), batches[round], [](double x) { return std::isnan(x); });
        !read.empty())
      own[round] = concat(read, ", ", batches[round].where());
  return firstOfAll(ranks, "faults in the data", own);
}

// Each micro-batch by itself: sums of gradients hold the faults of others, and those of the step that went wrong.
std::string TrainingRun::findInLaunches(const OperatorOf &operatorOf) {
  std::vector<std::string> nans(rounds()), infinities(rounds());
  for (size_t round = 0; round < rounds(); ++round) {
    FaultFinder finder(operatorOf);
    replay(round, /*isFirst=*/true, &finder);
    if (finder.found().empty() || !batchOf(round).second)
      continue;
    std::string read = findRead(reader.data(), batches[round], [](double x) { return std::isinf(x); });
    (finder.isNan() ? nans : infinities)[round] =
        concat(read, read.empty() ? "" : "; ", finder.found(), ", ", batches[round].where());
    if (finder.isNan() && ranks.world() == 1)
      break;
  }
  // An infinity is perhaps of a mask: a NaN of a later micro-batch says more.
  std::string nan = firstOfAll(ranks, "first NaNs", nans);
  return nan.empty() ? firstOfAll(ranks, "first infinities", infinities) : nan;
}

std::string TrainingRun::findInGradients() {
  for (size_t round = 0; round < rounds(); ++round)
    replay(round, round == 0, nullptr);
  auto [name, greatest] = trainer.greatestGradient();
  std::vector<std::string> names = ranks.gatherTexts("greatest gradients", name);
  std::vector<double> values = ranks.gatherValues<double>("greatest gradients", {greatest});
  size_t most = static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
  return concat("the squares of all gradients add up to no finite number: the greatest element, ", values[most],
                ", is in the gradient of '", names[most], "'");
}

std::string TrainingRun::findFault(const OperatorOf &operatorOf) {
  std::string found = findInData();
  const bool isInData = !found.empty();
  if (found.empty())
    found = findInLaunches(operatorOf);
  if (found.empty())
    found = findInGradients();
  const char *cause = "";
  if (trainer.areKeptAsHalf() && !isInData) // parts of units, and what is rounded to them, have no parameter's name
    cause = "; gradients are kept as f16 (data_types.grad_accum_dtype), which ends at 65504";
  else if (ranks.world() > 1 && trainer.travelAsHalf() && found.find("gradient") != std::string::npos)
    cause = "; gradients travel as f16 (communication_data_type), which ends at 65504";
  return concat("step ", count - 1, ": ", found, cause);
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
    nlohmann::json last = nlohmann::json::array(); // of each round of the last step: which blocks ran
    for (size_t round = 0; count > 0 && round < rounds(); ++round) {
      last.emplace_back(nlohmann::json::array());
      for (const LayerGate &gate : gatesOf(count - 1, round))
        last.back().push_back(gate.runs);
    }
    progress.trainer["layers"] = {
        {"micro_batches", layerCounts.microBatches}, {"ran", layerCounts.ran}, {"gates", last}};
  }
  trainer.keepWidths(progress);
  return progress;
}

std::vector<CheckpointPart> TrainingRun::parts() { return trainer.parts(); }

std::function<void(const void *, size_t)> TrainingRun::releaseOfStates() { return trainer.releaseOfStates(); }

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
