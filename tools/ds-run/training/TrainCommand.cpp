// ds-run train: the loop around steps: log, evaluation, checkpoints, progress, and what may go wrong on the way.
#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/io/StrictJson.h"
#include "runtime/training/Curvature.h"
#include "tools/ds-run/profile/StepMeasure.h"
#include "tools/ds-run/training/Counters.h"
#include "tools/ds-run/training/ExportOnnx.h"
#include "tools/ds-run/training/MemoryUse.h"
#include "tools/ds-run/training/Places.h"
#include "tools/ds-run/training/RankKeys.h"
#include "tools/ds-run/training/TensorBoard.h"
#include "tools/ds-run/training/TrainPage.h"
#include "tools/ds-run/training/TrainingLog.h"
#include "tools/ds-run/training/Watch.h"
#include "tools/ds-run/training/Widths.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <limits>

namespace ds {
namespace {

volatile std::sig_atomic_t interruption = 0;
void onSignal(int number) { interruption = number; }

// While it lives, SIGINT and SIGTERM end the loop after a step instead of the process.
class SignalGuard {
public:
  SignalGuard() {
    interruption = 0;
    for (size_t i = 0; i < 2; ++i)
      before[i] = std::signal(numbers[i], onSignal);
  }
  ~SignalGuard() {
    for (size_t i = 0; i < 2; ++i)
      std::signal(numbers[i], before[i]);
  }

private:
  static constexpr int numbers[] = {SIGINT, SIGTERM};
  void (*before[2])(int) = {};
};

nlohmann::json readClientState(const std::string &path) {
  if (path.empty())
    return nullptr;
  constexpr size_t mostBytes = size_t(1) << 26;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) // a pipe would be waited for
    fail(ErrorCode::Io, "--client-state: ", path, ": ", error ? error.message() : "expected a file");
  std::string text = readTextFile(path, mostBytes);
  try {
    return parseStrictJson(text);
  } catch (Error &wrong) {
    wrong.annotate(path);
    throw;
  }
}

// Throws Error where a checkpoint or a page could not be written at the end: now, before anything is computed. Leaves
// no trace.
void checkTargets(const TrainOptions &options, const config::TrainingConfig &config) {
  namespace fs = std::filesystem;
  for (const std::string *path : {&options.run.html, &options.counters})
    if (!path->empty())
      AtomicFile probe(*path);
  if (config.flopsProfiler.isEnabled && !config.flopsProfiler.outputFile.empty())
    AtomicFile report(config.flopsProfiler.outputFile);
  if (options.checkpoint.empty())
    return;
  std::vector<fs::path> made; // innermost first
  std::error_code error;
  for (fs::path folder = fs::absolute(options.checkpoint, error); !folder.empty() && !fs::exists(folder, error);
       folder = folder.parent_path())
    made.push_back(folder);
  fs::create_directories(options.checkpoint, error);
  std::optional<Error> failure;
  if (error)
    failure.emplace(ErrorCode::Io, concat("--checkpoint: ", options.checkpoint, ": ", error.message()));
  else
    try {
      AtomicFile probe(options.checkpoint + "/latest");
    } catch (const Error &wrong) {
      failure.emplace(wrong);
    }
  for (const fs::path &folder : made)
    fs::remove(folder, error); // only what is empty
  if (failure)
    throw Error(*failure);
}

class TrainLoop {
public:
  TrainLoop(const TrainOptions &options, const RunRanks &group);
  int run();

private:
  void checkOptions() const;
  void begin();
  void restore(Checkpoint &checkpoint);
  void openOutputs();
  bool isDone() const;
  bool isInterrupted();
  void addCurves(const StepRecord &record, const std::optional<Score> &score);
  void writePage() const;
  void finish();
  int64_t plannedSteps() const;
  std::optional<Score> maybeEvaluate(bool isLast);
  void save(bool isLast);
  void report(const std::string &profile);
  void print(const StepRecord &record, const std::optional<Score> &score);

  const TrainOptions &options;
  const RunRanks &group;
  MemoryUse memory;
  std::shared_ptr<const Package> package;
  config::TrainingConfig config;
  Trainer trainer;
  std::shared_ptr<const Dataset> data, evalData;
  nlohmann::json clientState;
  std::optional<BatchReader> reader;
  std::optional<TrainingRun> training;
  std::optional<TrainingLog> log;
  std::optional<TensorBoard> board;
  std::optional<Watch> watch;
  std::optional<StepProfiler> profiler;
  History history;
  double bestLoss = std::numeric_limits<double>::infinity();
  bool hasNamedFault = false, hasSaidFrozen = false;
  int stopSignal = 0;               // that reached a rank
  std::vector<int64_t> printedBits; // of quantized weights
  int64_t worse = 0;                // evaluations since the best one
  int64_t savedAt = -1;             // step of the last checkpoint
  int64_t evaluated = -1;           // step of the last evaluation
};

TrainLoop::TrainLoop(const TrainOptions &options, const RunRanks &group)
    : options(options), group(group),
      package(loadPackage(options.run.package, options.run, group.rank(), group.world())),
      config(configOf(*package, options, group)),
      trainer(package, sessionOf(options, group, placesOf(config, options))) {
  checkOptions();
  if (group.isFirst())
    checkTargets(options, config);
  clientState = readClientState(options.clientState);
  data = openData(trainer, options.data, options);
  if (!options.evalData.empty())
    evalData = openData(trainer, options.evalData, options);
  begin();
  openOutputs();
}

void TrainLoop::checkOptions() const {
  if (!options.steps && !options.epochs)
    fail(ErrorCode::InvalidArgument, "expected --steps=N or --epochs=N, found neither");
  for (auto [name, isGiven] :
       {std::pair("--resume", options.resumes), std::pair("--save-interval", options.saveInterval.has_value()),
        std::pair("--keep", options.keep.has_value()), std::pair("--tag", !options.tag.empty()),
        std::pair("--client-state", !options.clientState.empty())})
    if (isGiven && options.checkpoint.empty())
      fail(ErrorCode::InvalidArgument, name, " is about checkpoints, found no --checkpoint=DIR");
  for (auto [name, isGiven] : {std::pair("--eval-interval", options.evalInterval.has_value()),
                               std::pair("--patience", options.patience.has_value())})
    if (isGiven && options.evalData.empty())
      fail(ErrorCode::InvalidArgument, name, " is about evaluation, found no --eval-data=DATA");
  if (options.patience && !options.evalInterval)
    fail(ErrorCode::InvalidArgument, "--patience counts evaluations, found no --eval-interval=N");
  if (!options.tag.empty())
    checkTag(options.tag);
}

// The run as it stands before its first step, from the start or from a checkpoint; ranks agree on it.
void TrainLoop::begin() {
  std::optional<Checkpoint> checkpoint;
  if (options.resumes)
    checkpoint.emplace(options.checkpoint, options.resumeTag);
  uint64_t seed = options.seed.value_or(checkpoint ? checkpoint->progress().seed : 0);
  if (checkpoint && seed != checkpoint->progress().seed)
    fail(ErrorCode::InvalidArgument, "--seed: found ", seed, ", expected that of ", checkpoint->path(), ", ",
         checkpoint->progress().seed);
  bool isShuffled = options.shuffle == "on";
  if (checkpoint && checkpoint->progress().trainer.value("shuffled", isShuffled) != isShuffled)
    fail(ErrorCode::InvalidArgument, "--shuffle: found ", options.shuffle, ", expected as for ", checkpoint->path());
  if (group.world() > 1) {
    auto facts = factsOf(*package, config, options, *data);
    facts.emplace_back("seed", std::to_string(seed));
    facts.emplace_back("evaluation data of", concat(evalData ? evalData->samples() : 0, " samples"));
    facts.emplace_back("step", std::to_string(checkpoint ? checkpoint->progress().step : 0));
    requireAgreement(group.ranks(), facts);
  }
  takePlaces(trainer, *data, config, options, group);
  reader.emplace(data, Sampler(data->samples(), seed, isShuffled, options.epochs.value_or(0)), config.microBatch,
                 LastBatch::Smaller);
  training.emplace(trainer, runSettings(config), *reader, group.ranks());
  if (checkpoint)
    restore(*checkpoint);
  if (config.oneBit.isEnabled && group.world() > 1 && config.oneBit.freezeStep >= plannedSteps())
    fail(ErrorCode::InvalidArgument, "optimizer.params.freeze_step: found ", config.oneBit.freezeStep,
         ", expected less than the ", plannedSteps(), " steps of this run: no message would be compressed");
  checkRankKeys(config, group);
  const BitSchedule *widths = trainer.widths();
  if (!widths)
    return;
  checkTargetIsReached(config.quantization, *widths, training->steps(), plannedSteps());
  constexpr int64_t mostFactor = 5;
  int64_t latest = training->steps() + widths->updatesToTarget(mostFactor);
  if (config.quantization.eigenvalue.isEnabled && latest > plannedSteps() && group.isFirst())
    std::fprintf(stderr, "ds-run: note: quantize_training: layers of great eigenvalues may need %lld steps\n",
                 static_cast<long long>(latest));
  printedBits = bitsOf(*widths);
}

void TrainLoop::restore(Checkpoint &checkpoint) {
  training->restore(checkpoint);
  const nlohmann::json &own = checkpoint.progress().trainer;
  if (own.contains("best_eval_loss"))
    bestLoss = own["best_eval_loss"].get<double>();
  worse = own.value("evaluations_since", int64_t(0));
  if (options.clientState.empty())
    clientState = checkpoint.progress().clientState;
  savedAt = training->steps();
}

// Log, curves, page and profile are rank 0's.
void TrainLoop::openOutputs() {
  history.first = training->steps();
  watch.emplace(trainer, group.ranks());
  if (!group.isFirst())
    return;
  log.emplace(options.log, training->steps(), LogFields{config.optimizer.hasMomentum(), config.isFp16});
  if (!options.run.html.empty())
    history = log->earlier();
  history.first = training->steps();
  if (config.tensorboard.isEnabled)
    board.emplace((config.tensorboard.outputPath.empty() ? std::string(".") : config.tensorboard.outputPath) + "/" +
                  config.tensorboard.jobName);
  profiler.emplace(trainer, config.flopsProfiler);
  if (config.dumpsState) {
    config::printConfig(config, std::cout);
    for (const std::string &name : trainer.parameters())
      std::cout << "parameter " << name << '\n';
    for (const std::string &name : trainer.statistics())
      std::cout << "running statistic " << name << '\n';
    for (const std::string &name : trainer.optimizerStates())
      std::cout << "optimizer state " << name << '\n';
    std::cout.flush();
  }
}

bool TrainLoop::isDone() const {
  return (options.steps && training->steps() >= *options.steps) || (options.patience && worse >= *options.patience) ||
         reader->isAtEnd();
}

// Signals do not reach all ranks in the same step: they stop together.
bool TrainLoop::isInterrupted() {
  std::vector<int> signals = group.ranks().gatherValues<int>("interruption", {static_cast<int>(interruption)});
  stopSignal = *std::max_element(signals.begin(), signals.end());
  return stopSignal != 0;
}

// From the start of training, if nothing stops it early.
int64_t TrainLoop::plannedSteps() const {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  int64_t steps = options.steps.value_or(most);
  int64_t ofStep = config.accumulation * group.world();
  int64_t perEpoch = (reader->batchesPerEpoch() + ofStep - 1) / ofStep;
  if (options.epochs && *options.epochs <= most / std::max<int64_t>(perEpoch, 1))
    steps = std::min(steps, *options.epochs * perEpoch);
  return steps;
}

std::optional<Score> TrainLoop::maybeEvaluate(bool isLast) {
  bool isDue = options.evalInterval && training->steps() % *options.evalInterval == 0;
  if (!evalData || evaluated == training->steps() || !(isDue || isLast))
    return std::nullopt;
  evaluated = training->steps();
  Score score = evaluate(trainer, evalData, config.microBatch, group.ranks());
  if (isDue && score.loss < bestLoss) { // what was stopped early is evaluated at another step: it counts for nothing
    bestLoss = score.loss;
    worse = 0;
  } else if (isDue) {
    ++worse;
  }
  history.scores.emplace_back(training->steps() - 1, score);
  return score;
}

void TrainLoop::save(bool isLast) {
  bool isDue = options.saveInterval && training->steps() % *options.saveInterval == 0;
  if (options.checkpoint.empty() || savedAt == training->steps() || !(isDue || isLast))
    return;
  TrainingProgress progress = training->progress();
  if (std::isfinite(bestLoss)) {
    progress.trainer["best_eval_loss"] = bestLoss;
    progress.trainer["evaluations_since"] = worse;
  }
  progress.clientState = clientState;
  SaveOptions saving;
  saving.tag = isLast ? options.tag : "";
  saving.keep = static_cast<unsigned>(std::min<int64_t>(options.keep.value_or(0), std::numeric_limits<int>::max()));
  saving.tags = config.tagValidation == "IGNORE" ? TagValidation::Ignore
                : config.tagValidation == "FAIL" ? TagValidation::Fail
                                                 : TagValidation::Warn;
  saving.release = training->releaseOfStates();
  std::string warning;
  std::string tag = saveCheckpoint(options.checkpoint, progress, training->parts(), saving, group.ranks(), &warning);
  savedAt = training->steps();
  if (!warning.empty())
    watch->warn(warning);
  watch->say(concat("saved ", options.checkpoint, "/", tag));
}

void TrainLoop::print(const StepRecord &record, const std::optional<Score> &score) {
  if (score)
    watch->say(concat("step ", record.step, ": evaluation loss ", score->loss,
                      score->accuracy ? concat(", accuracy ", *score->accuracy) : std::string()));
  if (record.isFrozen && !hasSaidFrozen) {
    hasSaidFrozen = true;
    watch->say(concat("step ", record.step, ": second averages stay as they are from here on",
                      group.world() > 1 ? ", and momentum travels in 1 bit" : ""));
  }
  if (config.quantization.eigenvalue.isVerbose && !record.eigenvalues.empty())
    watch->say(concat("step ", record.step, ": eigenvalues ", numbersText(record.eigenvalues), ", periods times 2 x ",
                      numbersText(periodFactors(record.eigenvalues, record.eigenvalues.size()))));
  if (config.quantization.isVerbose && record.bits != printedBits) {
    watch->say(concat("step ", record.step, ": weights in ", bitsText(record.bits)));
    printedBits = record.bits;
  }
  if (config.stepsPerPrint > 0 && (record.step + 1) % config.stepsPerPrint == 0) {
    watch->say(concat("step ", record.step, ": loss ", record.loss, ", lr ", record.lr, ", grad norm ", record.gradNorm,
                      config.isFp16 ? concat(", loss scale ", record.lossScale) : std::string(),
                      record.skipped ? concat(", skipped ", record.skipped) : std::string(),
                      record.theta ? concat(", theta ", *record.theta, ", blocks ", record.blocks) : std::string()));
    if (config.wallClockBreakdown)
      watch->say(concat("step ", record.step, ": data ", record.dataMs, " ms, forward and backward ", record.microMs,
                        " ms, update ", record.updateMs, " ms"));
  }
}

void TrainLoop::report(const std::string &profile) {
  if (profile.empty())
    return;
  if (config.flopsProfiler.outputFile.empty())
    return watch->say(profile);
  AtomicFile file(config.flopsProfiler.outputFile);
  file.write(profile.data(), profile.size());
  file.commit();
}

void TrainLoop::addCurves(const StepRecord &record, const std::optional<Score> &score) {
  if (!board)
    return;
  auto at = record.samples;
  for (auto [tag, value] :
       {std::pair("Train/Samples/train_loss", record.loss), std::pair("Train/Samples/lr", record.lr),
        std::pair("Train/Samples/grad_norm", record.gradNorm)})
    board->add(tag, value, at);
  if (config.isFp16)
    board->add("Train/Samples/loss_scale", record.lossScale, at);
  if (record.theta) {
    board->add("Train/Samples/pld_theta", *record.theta, at);
    board->add("Train/Samples/blocks", static_cast<double>(record.blocks), at);
  }
  if (!record.bits.empty())
    board->add("Train/Samples/bits", static_cast<double>(*std::max_element(record.bits.begin(), record.bits.end())),
               at);
  if (score)
    board->add("Eval/Samples/loss", score->loss, at);
  board->flush();
}

int TrainLoop::run() {
  SignalGuard guard;
  watch->start(training->steps(), plannedSteps());
  while (!isDone() && !isInterrupted()) {
    if (profiler)
      profiler->before(*training);
    std::optional<StepRecord> record = training->step();
    if (!record)
      break;
    if (profiler)
      report(profiler->after(*training, *record));
    history.steps.push_back(*record);
    bool isLast = isDone();
    std::optional<Score> score;
    if (!record->isHopeless)
      score = maybeEvaluate(isLast);
    if (log)
      log->add(*record, score, memory.peakBytes());
    addCurves(*record, score);
    watch->seen(*record);
    print(*record, score);
    auto findFault = [&] {
      return training->findFault([&](const std::string &node) { return operatorOf(*package, node); });
    };
    // The loss is computed before it is scaled: smaller scales do not mend it, other batches may.
    if (record->overflowed && !record->isHopeless && !std::isfinite(record->loss) && !hasNamedFault) {
      hasNamedFault = true;
      watch->warn(concat(findFault(), "; this step, and others of which the loss is no finite number, are skipped"));
    }
    if (record->isHopeless) {
      // Nothing was updated: what is saved is what went well.
      std::string fault = findFault();
      writePage();
      fail(ErrorCode::Execution, fault,
           config.lossScale.constant == 0 ? concat("; the loss scale is ", record->lossScale, ", its minimum")
                                          : std::string());
    }
    save(false);
  }
  finish();
  return stopSignal ? 128 + stopSignal : 0;
}

void TrainLoop::writePage() const {
  if (!options.run.html.empty() && group.isFirst())
    writeTrainPage(options.run.html, options.run.package, history);
}

void TrainLoop::finish() {
  if (const BitSchedule *widths = trainer.widths(); widths && !widths->isAtTarget() && !stopSignal)
    watch->warn(concat("quantize_training: the run ends with ", bitsText(bitsOf(*widths)), ", expected ",
                       config.quantization.targetBits, ", which ", widths->updatesToTarget(),
                       " more steps reach at best"));
  // The data may have ended before anything knew that the step was the last.
  if (std::optional<Score> score = maybeEvaluate(true); score && !history.steps.empty())
    print(history.steps.back(), score);
  save(true);
  if (std::string reason = profiler ? profiler->reasonForNone() : ""; !reason.empty())
    watch->warn(reason);
  watch->finish();
  if (config.memoryBreakdown)
    watch->say(memoryText(trainer, *data, config, trainer.session().threads(), memory.peakBytes()));
  if (!options.counters.empty())
    writeCounters(options.counters, trainer, group, training->steps(), memory.peakBytes());
  writePage();
  if (!group.isFirst())
    return;
  if (stopSignal)
    std::fprintf(stderr, "ds-run: interrupted after step %lld%s\n", static_cast<long long>(training->steps()) - 1,
                 options.checkpoint.empty() ? "" : "; --resume goes on from there");
  else if (!history.steps.empty())
    std::printf("%lld steps, %lld samples, loss %.6g\n", static_cast<long long>(training->steps()),
                static_cast<long long>(training->samples()), history.steps.back().loss);
  else
    std::printf("nothing to do: %lld steps were done before\n", static_cast<long long>(training->steps()));
}

} // namespace

int trainCommand(const TrainOptions &options) {
  RunRanks group = RunRanks::join();
  return group.run([&] { return TrainLoop(options, group).run(); });
}

} // namespace ds
