// ds_trainer_*: a Trainer with the counters that a loop needs, and what a checkpoint keeps of them.
#include "ds/trainer.h"

#include "runtime/api/Internal.h"
#include "runtime/io/StrictJson.h"
#include "runtime/training/CompiledSettings.h"
#include "runtime/training/LossScale.h"
#include "runtime/training/Trainer.h"

#include <cmath>
#include <map>
#include <mutex>
#include <optional>

using namespace ds::api;
using ds::ErrorCode;
using ds::fail;

struct ds_trainer {
  ds_trainer(const std::shared_ptr<const ds::Package> &package, const ds::SessionOptions &options);

  std::vector<ds::TensorView> views(const ds_tensor *inputs, size_t count) const;
  // What the caller has written to parameters counts.
  void takeWritten() {
    trainer.session().withStates([](ds::StateStore &states) { states.roundMasters(); });
  }
  double scale() const { return gradientScale.value_or(scaler.scale()); }

  mutable std::mutex mutex;
  ds::Trainer trainer;
  InfoList inputs;
  std::vector<ds::Shape> shapes; // that the tensors below point to
  std::vector<std::string> gradientNames;
  std::vector<ds_tensor> parameters, gradients, states;

  double lr, momentum;
  ds::LossScaler scaler;
  ds::LayerDrop layerDrop;
  std::optional<double> gradientScale; // of the gradients; without, there are none
  bool hasMoved = false;               // statistics have moved since the last step, or since gradients began anew
  int64_t samples = 0;                 // of these
  int64_t drawn = 0;                   // micro-batches since the last step, which dropout tells apart
  ds::TrainingProgress progress;       // as loaded; counters are up to date, the rest is for the next checkpoint
  int64_t skipped = 0;
  std::optional<std::string> clientState;
};

ds_trainer::ds_trainer(const std::shared_ptr<const ds::Package> &package, const ds::SessionOptions &options)
    : trainer(package, options), scaler(ds::compiledSettings(package->manifest()).lossScale),
      layerDrop(ds::compiledSettings(package->manifest()).layerDrop, trainer.layers().size()) {
  ds::CompiledSettings compiled = ds::compiledSettings(package->manifest());
  if (compiled.quantization.isEnabled && compiled.quantization.eigenvalue.isEnabled)
    fail(ErrorCode::InvalidArgument, "quantize_training.eigenvalue: found true, expected false: ds-run train computes "
                                     "eigenvalues, loops of one's own do not");
  lr = compiled.lr;
  momentum = compiled.momentum;
  for (const ds::TensorInfo &info : trainer.batch())
    inputs.push_back(makeInfo(info.name, info.type, info.shape, info.bound.value_or(0)));
  // States that there are keep their memory.
  std::map<std::string, ds::TensorView> found;
  trainer.touchStates();
  trainer.session().withStates([&](ds::StateStore &store) {
    for (ds::NamedView &state : store.views())
      found[state.name] = std::move(state.view);
  });
  for (const std::string &name : trainer.parameters())
    gradientNames.push_back(ds::Trainer::gradientOf(name));
  shapes.reserve(2 * gradientNames.size() + trainer.statistics().size() + trainer.optimizerStates().size());
  auto list = [&](const std::vector<std::string> &names, std::vector<ds_tensor> &tensors) {
    for (const std::string &name : names) {
      auto state = found.find(name);
      if (state == found.end())
        fail(ErrorCode::BadPackage, "entry 'update': has no state '", name, "' of a constant shape");
      const ds::Shape &shape = shapes.emplace_back(state->second.shape);
      tensors.push_back({sizeof(ds_tensor), name.c_str(), static_cast<ds_type>(state->second.type), shape.size(),
                         shape.data(), const_cast<void *>(state->second.data)});
    }
  };
  list(trainer.parameters(), parameters);
  list(gradientNames, gradients);
  list(trainer.optimizerStates(), states);
  list(trainer.statistics(), states);
}

std::vector<ds::TensorView> ds_trainer::views(const ds_tensor *given, size_t count) const {
  require(given || count == 0, "inputs");
  if (count != trainer.batch().size())
    fail(ErrorCode::InvalidArgument, "wrong number of inputs of a micro-batch, found ", count, ", expected ",
         trainer.batch().size());
  return orderInputs("micro-batch", trainer.batch(), given, count);
}

namespace {

// Runs an action while no other call of the trainer does.
template <typename Action> ds_status *locked(ds_trainer *trainer, Action action) noexcept {
  return guarded([&] {
    require(trainer, "trainer");
    std::lock_guard<std::mutex> lock(trainer->mutex);
    action();
  });
}

template <typename Action> auto ask(const ds_trainer *trainer, Action action) noexcept -> decltype(action(*trainer)) {
  if (!trainer)
    return {};
  std::lock_guard<std::mutex> lock(trainer->mutex);
  return action(*trainer);
}

const ds_tensor *at(const std::vector<ds_tensor> &tensors, size_t index) {
  return index < tensors.size() ? &tensors[index] : nullptr;
}

int64_t readSkipped(const ds::Checkpoint &checkpoint) {
  const ds::TrainingProgress &progress = checkpoint.progress();
  if (!progress.trainer.is_object())
    fail(ErrorCode::BadFile, checkpoint.path(), ": trainer: expected an object");
  auto found = progress.trainer.find("skipped");
  if (found == progress.trainer.end())
    return 0;
  int64_t skipped = found->is_number_integer() ? found->get<int64_t>() : -1;
  if (skipped < 0 || skipped > progress.step)
    fail(ErrorCode::BadFile, checkpoint.path(), ": trainer.skipped: found ", found->dump(), ", expected 0 to ",
         progress.step);
  return skipped;
}

} // namespace

extern "C" {

ds_status *ds_trainer_create(const ds_package *package, const ds_trainer_options *given, ds_trainer **trainer) {
  return guarded([&] {
    require(package && trainer, "package or trainer");
    ds_trainer_options options = readOptions(given, "ds_trainer_options");
    ds::SessionOptions session;
    session.threads = options.threads;
    checkThreads(options.threads);
    *trainer = new ds_trainer(package->package, session);
  });
}

void ds_trainer_free(ds_trainer *trainer) { delete trainer; }

size_t ds_trainer_input_count(const ds_trainer *trainer) { return trainer ? trainer->inputs.size() : 0; }
const ds_tensor_info *ds_trainer_input(const ds_trainer *trainer, size_t index) {
  return index < ds_trainer_input_count(trainer) ? &trainer->inputs[index]->info : nullptr;
}

size_t ds_trainer_parameter_count(const ds_trainer *trainer) { return trainer ? trainer->parameters.size() : 0; }
const ds_tensor *ds_trainer_parameter(const ds_trainer *trainer, size_t index) {
  return trainer ? at(trainer->parameters, index) : nullptr;
}
const ds_tensor *ds_trainer_gradient(const ds_trainer *trainer, size_t index) {
  return trainer ? at(trainer->gradients, index) : nullptr;
}
size_t ds_trainer_state_count(const ds_trainer *trainer) { return trainer ? trainer->states.size() : 0; }
const ds_tensor *ds_trainer_state(const ds_trainer *trainer, size_t index) {
  return trainer ? at(trainer->states, index) : nullptr;
}

ds_status *ds_trainer_forward(ds_trainer *trainer, const ds_tensor *inputs, size_t count, ds_evaluation *evaluation,
                              ds_outputs **outputs) {
  return locked(trainer, [&] {
    readOptions(evaluation, "ds_evaluation");
    std::vector<ds::TensorView> views = trainer->views(inputs, count);
    trainer->trainer.checkLabels(views, [](int64_t row) { return ds::concat("sample ", row, " of the micro-batch"); });
    trainer->takeWritten();
    ds::Evaluation found = trainer->trainer.evaluate(views);
    if (outputs)
      giveOutputs(std::move(found.outputs), trainer->trainer.outputs(), outputs);
    giveEvaluation(found.loss, found.counted, found.correct, evaluation);
  });
}

ds_status *ds_trainer_backward(ds_trainer *trainer, const ds_tensor *inputs, size_t count, double weight,
                               double *loss) {
  return locked(trainer, [&] {
    if (!std::isfinite(weight))
      fail(ErrorCode::InvalidArgument, "weight: found ", weight, ", expected a finite number");
    std::vector<ds::TensorView> views = trainer->views(inputs, count);
    if (trainer->gradientScale && !trainer->trainer.accumulates())
      fail(ErrorCode::InvalidArgument, "the package was compiled for one micro-batch a step, found a second one since "
                                       "gradients began anew");
    double scale = trainer->scale();
    if (!trainer->hasMoved)
      trainer->trainer.beginStatistics();
    trainer->takeWritten();
    // What is there is added to: zeros, or what the caller wrote.
    const ds::TrainingProgress &progress = trainer->progress;
    ds::RandomPlace place = {progress.seed, progress.step, trainer->drawn};
    double found = trainer->trainer.microBatch(views, weight * scale, /*one rank sends nothing*/ {}, place,
                                               trainer->layerDrop.draw(place));
    ++trainer->drawn;
    trainer->hasMoved = true;
    trainer->gradientScale = scale;
    if (!views.empty() && !views[0].shape.empty())
      trainer->samples += views[0].shape[0];
    if (loss)
      *loss = found;
  });
}

ds_status *ds_trainer_zero_gradients(ds_trainer *trainer) {
  return locked(trainer, [&] {
    trainer->trainer.zeroGradients();
    trainer->gradientScale.reset();
    trainer->hasMoved = false;
    trainer->samples = 0;
  });
}

ds_status *ds_trainer_set_learning_rate(ds_trainer *trainer, double rate) {
  return locked(trainer, [&] {
    if (!std::isfinite(rate) || rate < 0)
      fail(ErrorCode::InvalidArgument, "learning rate: found ", rate, ", expected a finite number of 0 or more");
    trainer->lr = rate;
  });
}

ds_status *ds_trainer_set_momentum(ds_trainer *trainer, double momentum) {
  return locked(trainer, [&] {
    if (!(momentum >= 0 && momentum < 1))
      fail(ErrorCode::InvalidArgument, "momentum: found ", momentum, ", expected a number in [0, 1)");
    trainer->momentum = momentum;
  });
}

ds_status *ds_trainer_set_seed(ds_trainer *trainer, uint64_t seed) {
  return locked(trainer, [&] {
    trainer->progress.seed = seed;
    trainer->trainer.setRoundingSeed(seed);
  });
}
uint64_t ds_trainer_seed(const ds_trainer *trainer) {
  return ask(trainer, [](const ds_trainer &own) { return own.progress.seed; });
}

double ds_trainer_learning_rate(const ds_trainer *trainer) {
  return ask(trainer, [](const ds_trainer &own) { return own.lr; });
}
double ds_trainer_momentum(const ds_trainer *trainer) {
  return ask(trainer, [](const ds_trainer &own) { return own.momentum; });
}

ds_status *ds_trainer_step(ds_trainer *trainer, double *gradNorm, int *isFinite) {
  return locked(trainer, [&] {
    if (!trainer->gradientScale)
      fail(ErrorCode::InvalidArgument, "step: there are no gradients, found no ds_trainer_backward since they began "
                                       "anew");
    if (!trainer->hasMoved)
      trainer->trainer.beginStatistics(); // the gradients are those of an earlier step, and what it moved is kept
    ds::TrainingProgress &progress = trainer->progress;
    ds::StepResult result = trainer->trainer.update(
        {trainer->lr, trainer->momentum, progress.step - trainer->skipped + 1, *trainer->gradientScale});
    trainer->scaler.update(!result.isFinite);
    trainer->hasMoved = false;
    trainer->drawn = 0;
    ++progress.step;
    progress.trainer.erase("layers"); // counted by ds-run train alone: those of a loaded run are of other steps
    trainer->skipped += result.isFinite ? 0 : 1;
    progress.samples += trainer->samples;
    trainer->samples = 0;
    if (gradNorm)
      *gradNorm = result.gradNorm;
    if (isFinite)
      *isFinite = result.isFinite;
  });
}

int64_t ds_trainer_steps(const ds_trainer *trainer) {
  return ask(trainer, [](const ds_trainer &own) { return own.progress.step; });
}
int64_t ds_trainer_skipped_steps(const ds_trainer *trainer) {
  return ask(trainer, [](const ds_trainer &own) { return own.skipped; });
}
double ds_trainer_loss_scale(const ds_trainer *trainer) {
  return ask(trainer, [](const ds_trainer &own) { return own.scale(); });
}

ds_status *ds_trainer_save(ds_trainer *trainer, const char *folder, const char *tag, const char *clientState) {
  return locked(trainer, [&] {
    require(folder, "folder");
    ds::TrainingProgress progress = trainer->progress;
    progress.lossScale = trainer->scaler.state();
    progress.trainer["skipped"] = trainer->skipped;
    trainer->trainer.keepWidths(progress);
    progress.clientState = readClientState(clientState);
    ds::SaveOptions options;
    options.tag = tag ? tag : "";
    if (tag && !*tag)
      fail(ErrorCode::InvalidArgument, "tag: found none, expected a name, or null for global_step", progress.step);
    options.release = trainer->trainer.releaseOfStates();
    ds::saveCheckpoint(folder, progress, trainer->trainer.parts(), options);
  });
}

ds_status *ds_trainer_load(ds_trainer *trainer, const char *folder, const char *tag, const char **clientState) {
  return locked(trainer, [&] {
    require(folder, "folder");
    ds::Checkpoint checkpoint(folder, tag ? tag : "");
    int64_t skipped = readSkipped(checkpoint);
    trainer->trainer.requireAll(checkpoint);
    ds::LossScaler scaler = trainer->scaler;
    scaler.restore(checkpoint.progress().lossScale);
    std::optional<std::string> state;
    if (!checkpoint.progress().clientState.is_null())
      state = ds::writeStrictJson(checkpoint.progress().clientState);
    ds::TrainingProgress progress = checkpoint.progress();
    std::optional<ds::BitSchedule> widths = trainer->trainer.widthsIn(checkpoint);
    trainer->trainer.session().withStates([&](ds::StateStore &states) { states.restore(checkpoint); });
    trainer->trainer.setWidths(std::move(widths));
    trainer->trainer.setRoundingSeed(progress.seed);
    trainer->trainer.zeroGradients();
    trainer->gradientScale.reset();
    trainer->hasMoved = false;
    trainer->samples = trainer->drawn = 0;
    trainer->scaler = scaler;
    trainer->progress = std::move(progress);
    trainer->skipped = skipped;
    trainer->clientState = std::move(state);
    if (clientState)
      *clientState = trainer->clientState ? trainer->clientState->c_str() : nullptr;
  });
}

} // extern "C"
