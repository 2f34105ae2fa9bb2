// ds_engine_*: an Engine behind a lock, and the ranks that a process joins once.
#include "ds/engine.h"

#include "runtime/api/Internal.h"
#include "runtime/comm/Connect.h"
#include "runtime/engine/Engine.h"
#include "runtime/io/StrictJson.h"

#include <atomic>
#include <mutex>

using namespace ds::api;
using ds::ErrorCode;
using ds::fail;

struct ds_engine {
  ds_engine(const std::shared_ptr<const ds::Package> &package, const ds::EngineOptions &options)
      : engine(package, options) {
    for (const ds::TensorInfo &info : engine.trainer().batch())
      inputs.push_back(makeInfo(info.name, info.type, info.shape, info.bound.value_or(0)));
  }

  std::vector<ds::TensorView> views(const ds_tensor *given, size_t count) const {
    require(given || count == 0, "inputs");
    const std::vector<ds::TensorInfo> &batch = engine.trainer().batch();
    if (count != batch.size())
      fail(ErrorCode::InvalidArgument, "wrong number of inputs of a micro-batch, found ", count, ", expected ",
           batch.size());
    return orderInputs("micro-batch", batch, given, count);
  }

  mutable std::mutex mutex;
  ds::Engine engine;
  InfoList inputs;
  std::optional<std::string> clientState;
};

namespace {

template <typename Action> ds_status *locked(ds_engine *engine, Action action) noexcept {
  return guarded([&] {
    require(engine, "engine");
    std::lock_guard<std::mutex> lock(engine->mutex);
    action(engine->engine);
  });
}

template <typename Action> auto ask(const ds_engine *engine, Action action) noexcept -> decltype(action(*engine)) {
  if (!engine)
    return {};
  std::lock_guard<std::mutex> lock(engine->mutex);
  return action(*engine);
}

// The ranks of this process meet once: who comes again would wait for others that do not.
std::shared_ptr<ds::Communicator> joinRanks() {
  static std::atomic<bool> hasJoined = false;
  std::optional<ds::RankOptions> ranks = ds::ranksOfEnvironment();
  if (!ranks)
    return nullptr;
  if (hasJoined.exchange(true))
    fail(ErrorCode::Collective, "rank ", ranks->rank,
         ": this process has joined its ranks before, for an engine that "
         "it made; expected one engine a process, or is_alone");
  return ds::connectRanks(*ranks);
}

} // namespace

extern "C" {

ds_status *ds_engine_create(const ds_package *package, const ds_engine_options *given, ds_engine **engine) {
  return guarded([&] {
    require(package && engine, "package or engine");
    ds_engine_options options = readOptions(given, "ds_engine_options");
    checkThreads(options.threads);
    ds::EngineOptions engineOptions;
    engineOptions.threads = options.threads;
    engineOptions.config = options.config ? options.config : "";
    engineOptions.seed = options.seed;
    if (!options.is_alone)
      engineOptions.communicator = joinRanks();
    try {
      *engine = new ds_engine(package->package, engineOptions);
    } catch (const std::exception &error) {
      if (engineOptions.communicator)
        engineOptions.communicator->leave(error.what());
      throw;
    }
  });
}

void ds_engine_free(ds_engine *engine) { delete engine; }

unsigned ds_engine_rank(const ds_engine *engine) {
  return ask(engine, [](const ds_engine &own) { return own.engine.ranks().rank(); });
}
unsigned ds_engine_world(const ds_engine *engine) {
  return engine ? ask(engine, [](const ds_engine &own) { return own.engine.ranks().world(); }) : 1;
}

const char *ds_engine_note(const ds_engine *engine, size_t index) {
  return ask(engine, [&](const ds_engine &own) -> const char * {
    const std::vector<std::string> &notes = own.engine.notes();
    return index < notes.size() ? notes[index].c_str() : nullptr;
  });
}

size_t ds_engine_input_count(const ds_engine *engine) { return engine ? engine->inputs.size() : 0; }
const ds_tensor_info *ds_engine_input(const ds_engine *engine, size_t index) {
  return index < ds_engine_input_count(engine) ? &engine->inputs[index]->info : nullptr;
}

int64_t ds_engine_micro_batch_size(const ds_engine *engine) {
  return ask(engine, [](const ds_engine &own) { return own.engine.config().microBatch; });
}
int64_t ds_engine_micro_batches(const ds_engine *engine) {
  return ask(engine, [](const ds_engine &own) { return own.engine.config().accumulation; });
}
int64_t ds_engine_micro_batches_done(const ds_engine *engine) {
  return ask(engine, [](const ds_engine &own) { return own.engine.run().broughtBatches(); });
}

ds_status *ds_engine_evaluate(ds_engine *engine, const ds_tensor *inputs, size_t count, ds_evaluation *evaluation,
                              ds_outputs **outputs) {
  return locked(engine, [&](ds::Engine &live) {
    readOptions(evaluation, "ds_evaluation");
    ds::Evaluation found = live.evaluate(engine->views(inputs, count));
    if (outputs)
      giveOutputs(std::move(found.outputs), live.trainer().outputs(), outputs);
    giveEvaluation(found.loss, found.counted, found.correct, evaluation);
  });
}

ds_status *ds_engine_micro_batch(ds_engine *engine, const ds_tensor *inputs, size_t count, double *loss) {
  return locked(engine, [&](ds::Engine &live) {
    double found = live.microBatch(engine->views(inputs, count));
    if (loss)
      *loss = found;
  });
}

ds_status *ds_engine_step(ds_engine *engine, ds_step *step) {
  return locked(engine, [&](ds::Engine &live) {
    readOptions(step, "ds_step");
    ds::StepRecord record = live.step();
    give(ds_step{0, record.step, record.samples, record.loss, record.lr, record.momentum, record.gradNorm,
                 record.lossScale, record.overflowed},
         step);
  });
}

int64_t ds_engine_steps(const ds_engine *engine) {
  return ask(engine, [](const ds_engine &own) { return own.engine.run().steps(); });
}
int64_t ds_engine_skipped_steps(const ds_engine *engine) {
  return ask(engine, [](const ds_engine &own) { return own.engine.run().skipped(); });
}
double ds_engine_learning_rate(const ds_engine *engine) {
  return ask(engine, [](const ds_engine &own) { return own.engine.run().rates().lr; });
}
double ds_engine_momentum(const ds_engine *engine) {
  return ask(engine, [](const ds_engine &own) { return own.engine.run().rates().momentum; });
}
double ds_engine_loss_scale(const ds_engine *engine) {
  return ask(engine, [](const ds_engine &own) { return own.engine.run().lossScale(); });
}

ds_status *ds_engine_save(ds_engine *engine, const char *folder, const char *tag, const char *clientState) {
  return locked(engine, [&](ds::Engine &live) {
    require(folder, "folder");
    if (tag && !*tag)
      fail(ErrorCode::InvalidArgument, "tag: found none, expected a name, or null for global_step", live.run().steps());
    live.save(folder, tag ? tag : "", readClientState(clientState));
  });
}

ds_status *ds_engine_load(ds_engine *engine, const char *folder, const char *tag, const char **clientState) {
  return locked(engine, [&](ds::Engine &live) {
    require(folder, "folder");
    nlohmann::json state = live.load(folder, tag ? tag : "");
    engine->clientState.reset();
    if (!state.is_null())
      engine->clientState = ds::writeStrictJson(state);
    if (clientState)
      *clientState = engine->clientState ? engine->clientState->c_str() : nullptr;
  });
}

} // extern "C"
