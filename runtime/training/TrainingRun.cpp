#include "runtime/training/TrainingRun.h"

#include "runtime/core/Error.h"
#include "runtime/training/Curvature.h"
#include "runtime/training/FaultFinder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

namespace ds {

TrainingRun::TrainingRun(Trainer &trainer, const RunSettings &settings, BatchReader &reader, Ranks &ranks)
    : TrainingRun(trainer, settings, reader.sampler().seed(), ranks) {
  this->reader = &reader;
}

TrainingRun::TrainingRun(Trainer &trainer, const RunSettings &settings, uint64_t seed, Ranks &ranks)
    : trainer(trainer), schedule(settings.schedule), scaler(settings.lossScale),
      layerDrop(settings.layerDrop, trainer.layers().size()), accumulation(settings.accumulation),
      eigenvalue(settings.quantization.eigenvalue), seed(seed), ranks(ranks), lastScale(scaler.scale()) {
  layerCounts.ran.resize(layerDrop.blocks());
  if (accumulation > 1 && !trainer.accumulates())
    fail(ErrorCode::InvalidArgument, "gradient_accumulation_steps: found ", accumulation,
         ", expected 1: the package was compiled for one micro-batch a step");
  if (settings.predivide != 1 && ranks.world() > 1)
    shareOfRanks = ranks.world() / settings.predivide;
  trainer.setQuantization(settings.quantization);
  trainer.setRoundingSeed(seed);
}

// "sample 17 of the data", of a micro-batch's row.
static RowName sampleNames(const Batch &batch) {
  return [&batch](int64_t row) {
    if (batch.samples.empty()) // brought by the caller
      return concat("sample ", row, " of the micro-batch");
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
    std::optional<BatchPlace> place = reader->pass();
    if (!place)
      break;
    places.push_back(*place);
    samples += place->samples;
  }
  batches.resize(rounds());
  for (size_t round = 0; round < batches.size(); ++round) {
    reader->read(places[batchOf(round).first], batches[round]);
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

void TrainingRun::beginStep() {
  lastScale = scaler.scale();
  current.emplace();
  current->counts = layerCounts;
  ranks.setStep(count);
}

void TrainingRun::runRound() {
  const auto round = static_cast<size_t>(current->round);
  // Behind the warm-up of a 1-bit optimizer gradients stay this rank's own.
  bool sends = !trainer.isFrozenAt(count - skippedCount + 1);
  auto [micro, isCounted] = batchOf(round);
  std::vector<LayerGate> gates = gatesOf(count, round);
  bool restores = !isCounted && !trainer.statistics().empty();
  std::vector<Tensor> before = restores ? trainer.movedStatistics() : std::vector<Tensor>();
  current->losses.push_back(trainer.microBatch(batches[round].views(), isCounted ? weight() : 0,
                                               {round == 0, sends && round + 1 == rounds()}, placeOf(count, micro),
                                               gates, observer));
  if (restores)
    trainer.setMovedStatistics(before);
  auto running = std::count_if(gates.begin(), gates.end(), [](const LayerGate &gate) { return gate.runs; });
  for (size_t k = round * ranks.world(); k < std::min(places.size(), (round + 1) * ranks.world()); ++k) {
    current->counts.add(gates);
    current->record.blocks += running;
  }
  ++current->round;
}

std::vector<double> TrainingRun::gatherLosses() {
  std::vector<double> all = ranks.gatherValues("losses", current->losses), losses;
  for (size_t micro = 0; micro < places.size(); ++micro)
    losses.push_back(all[micro % ranks.world() * rounds() + micro / ranks.world()]);
  return losses;
}

// Milliseconds since the last call, and since the first.
class Laps {
public:
  double next() { return since(std::exchange(last, std::chrono::steady_clock::now())); }
  double all() const { return since(start); }

private:
  using Time = std::chrono::steady_clock::time_point;
  static double since(Time begin) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }
  Time start = std::chrono::steady_clock::now(), last = start;
};

std::optional<StepRecord> TrainingRun::step(const Rates &rates) {
  Laps laps;
  LoaderPosition place = reader->position();
  try {
    beginStep();
    // All micro-batches first: their number weighs each, and their labels are checked before anything is computed.
    if (readBatches() == 0) {
      current.reset();
      return std::nullopt;
    }
    StepRecord &record = current->record;
    record.dataMs = laps.next();
    while (static_cast<size_t>(current->round) < rounds())
      runRound();
    record.microMs = laps.next();
    StepRecord done = endStep(rates);
    done.milliseconds = laps.all();
    return done;
  } catch (...) {
    reader->seek(place);
    abandonStep();
    throw;
  }
}

double TrainingRun::microBatch(std::vector<Tensor> tensors) {
  if (broughtBatches() == accumulation)
    fail(ErrorCode::InvalidArgument, "micro-batch ", accumulation + 1, " of a step of ", accumulation,
         " (gradient_accumulation_steps): expected the end of the step first");
  Laps laps;
  try {
    if (!current) {
      beginStep();
      places.assign(static_cast<size_t>(accumulation) * ranks.world(), {});
      batches.resize(rounds());
    }
    Batch &batch = batches[static_cast<size_t>(current->round)];
    batch = {/*epoch=*/0, {}, std::move(tensors), concat("micro-batch ", current->round + 1, " of the step")};
    trainer.checkLabels(batch.views(), sampleNames(batch));
    runRound();
    current->record.microMs += laps.next();
    return current->losses.back();
  } catch (...) {
    abandonStep();
    throw;
  }
}

StepRecord TrainingRun::finishStep() {
  if (broughtBatches() != accumulation)
    fail(ErrorCode::InvalidArgument, "end of a step after ", broughtBatches(), " of its ", accumulation,
         " micro-batches (gradient_accumulation_steps)");
  try {
    // How many samples each micro-batch of all ranks has.
    std::vector<int64_t> own;
    for (const Batch &batch : batches)
      own.push_back(batch.tensors.empty() || batch.tensors[0].getShape().empty() ? 1 : batch.tensors[0].getShape()[0]);
    std::vector<int64_t> all = ranks.gatherValues("samples", own);
    for (size_t micro = 0; micro < places.size(); ++micro)
      places[micro].samples = all[micro % ranks.world() * rounds() + micro / ranks.world()];
    StepRecord done = endStep(rates());
    done.milliseconds = done.microMs + done.updateMs;
    return done;
  } catch (...) {
    abandonStep();
    throw;
  }
}

void TrainingRun::abandonStep() {
  current.reset();
  trainer.forgetGradients();
}

StepRecord TrainingRun::endStep(const Rates &rates) {
  Laps laps;
  StepRecord record = current->record;
  for (const BatchPlace &micro : places)
    record.stepSamples += micro.samples;
  record.microBatches = static_cast<int64_t>(places.size());
  std::vector<double> losses = gatherLosses();
  for (size_t micro = 0; micro < losses.size(); ++micro)
    record.loss += static_cast<double>(places[micro].samples) / static_cast<double>(record.stepSamples) * losses[micro];
  // A loss that is none may have finite gradients: such a step changes nothing, either.
  StepResult result = {std::numeric_limits<double>::quiet_NaN(), false};
  if (std::isfinite(record.loss)) {
    findFactors(record);
    averageStatistics();
    result = trainer.update({rates.lr, rates.momentum, count - skippedCount + 1, scaleOfUpdate()}, observer);
  }
  record.updateMs = laps.next();
  sampleCount += record.stepSamples;
  layerCounts = current->counts;
  current.reset();
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
  return record;
}

void TrainingRun::findFactors(StepRecord &record) {
  const BitSchedule *widths = trainer.widths();
  if (!eigenvalue.isEnabled || !widths || !widths->isAboutToDrop() || (count + 1) % eigenvalue.resolution != 0)
    return;
  // Of the step's last micro-batch, whoever it is: all ranks must come to the same widths.
  Batch last;
  reader->read(places.back(), last);
  record.eigenvalues =
      layerEigenvalues(trainer, last.views(), eigenvalue, lastScale, seed + static_cast<uint64_t>(count));
  trainer.setFactors(periodFactors(record.eigenvalues, widths->blocks()));
}

RandomPlace TrainingRun::placeOf(int64_t step, size_t micro) const { return {seed, step, static_cast<int64_t>(micro)}; }

std::vector<LayerGate> TrainingRun::gatesOf(int64_t step, size_t round) const {
  return layerDrop.draw(placeOf(step, round));
}

// "tensor 'x', which was read, holds nan in sample 3 of the data", of the first element for which `isFault` holds.
static std::string findRead(const std::vector<TensorInfo> &fields, const Batch &batch, bool (*isFault)(double)) {
  for (size_t field = 0; field < batch.tensors.size(); ++field) {
    TensorView view = batch.tensors[field].view();
    if (!isFloat(view.type))
      continue;
    int64_t count = elementCount(view.shape), rows = view.shape.empty() ? 1 : view.shape[0];
    for (int64_t at = 0; at < count; ++at)
      if (double value = loadDouble(view.type, view.data, static_cast<size_t>(at)); isFault(value))
        return concat("tensor '", fields[field].name, "', which was read, holds ", value, " in ",
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
    if (std::string read = findRead(trainer.batch(), batches[round], [](double x) { return std::isnan(x); });
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
    std::string read = findRead(trainer.batch(), batches[round], [](double x) { return std::isinf(x); });
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
  progress.seed = seed;
  progress.lossScale = scaler.state();
  progress.trainer = {{"skipped", skippedCount}};
  progress.loader = loader;
  progress.trainer.update(ofData);
  if (reader) {
    progress.loader = reader->position();
    progress.trainer["shuffled"] = reader->sampler().isShuffled();
    progress.trainer["data_samples"] = reader->data().samples();
  }
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
  int64_t found = reader ? reader->data().samples() : 0, samples = progress.trainer.value("data_samples", found);
  if (reader && samples != found)
    fail(ErrorCode::InvalidArgument, checkpoint.path(), ": was training on ", samples, " samples, found ", found,
         " in the data");
  trainer.requireAll(checkpoint);
  LayerCounts counts = countsIn(checkpoint, layerDrop.blocks());
  LossScaler restored = scaler;
  restored.restore(progress.lossScale);
  std::optional<BitSchedule> widths = trainer.widthsIn(checkpoint);
  if (std::string wrong = widths ? trainer.widths()->difference(*widths) : ""; !wrong.empty())
    fail(ErrorCode::InvalidArgument, "quantize_training: ", wrong, ", as ", checkpoint.path(), " was trained with");
  if (reader)
    reader->seek(progress.loader);
  loader = progress.loader;
  ofData = nlohmann::json::object();
  for (const char *key : {"shuffled", "data_samples"})
    if (auto value = progress.trainer.find(key); value != progress.trainer.end())
      ofData[key] = *value;
  seed = progress.seed;
  trainer.setRoundingSeed(seed);
  trainer.session().withStates([&](StateStore &states) { states.restore(checkpoint); });
  trainer.setWidths(std::move(widths));
  scaler = restored;
  layerCounts = counts;
  count = progress.step;
  sampleCount = progress.samples;
  skippedCount = progress.trainer.value("skipped", int64_t(0));
  current.reset();
}

} // namespace ds
