#include "runtime/engine/Engine.h"

#include "runtime/core/Error.h"
#include "runtime/training/CheckpointSaving.h"

#include <cmath>

namespace ds {

static config::TrainingConfig read(const Package &package, const EngineOptions &options, unsigned world,
                                   std::vector<std::string> &notes) {
  RunConfig found = runConfigOf(package, package.path(), options.config, originOf(world));
  if (!found.errors.empty()) {
    std::string others = found.errors.size() > 1 ? concat(" (and ", found.errors.size() - 1, " more)") : "";
    fail(ErrorCode::InvalidArgument, found.errors.front(), others);
  }
  notes = std::move(found.notes);
  if (found.config->quantization.isEnabled && found.config->quantization.eigenvalue.isEnabled)
    fail(ErrorCode::InvalidArgument, "quantize_training.eigenvalue: found true, expected false: ds-run train computes "
                                     "eigenvalues, loops of one's own do not");
  refuseOnRanks(*found.config, world);
  return std::move(*found.config);
}

static SessionOptions sessionOf(const EngineOptions &options, const config::TrainingConfig &config) {
  SessionOptions session;
  session.threads = options.threads;
  session.communicator = options.communicator;
  session.places = placesOf(config);
  return session;
}

Engine::Engine(std::shared_ptr<const Package> package, const EngineOptions &options)
    : communicator(options.communicator),
      joined(communicator ? std::make_unique<CommunicatorRanks>(communicator) : nullptr),
      others(joined ? joined.get() : &Ranks::one()), settings(read(*package, options, others->world(), texts)),
      live(package, sessionOf(options, settings)) {
  if (others->world() > 1) {
    auto facts = factsOf(*package, settings);
    facts.emplace_back("seed", std::to_string(options.seed));
    requireAgreement(*others, facts);
  }
  live.touchStates();
  training.emplace(live, runSettings(settings), options.seed, *others);
}

Engine::~Engine() {
  if (!communicator)
    return;
  try { // as ~Session does: what others still wait for goes out before this rank leaves
    live.session().settle();
    communicator->leave("");
  } catch (const std::exception &error) {
    communicator->leave(error.what());
  }
}

template <typename Action> auto Engine::together(Action action) -> decltype(action()) {
  try {
    return action();
  } catch (const std::exception &error) {
    if (communicator)
      communicator->leave(error.what());
    throw;
  }
}

double Engine::microBatch(const std::vector<TensorView> &views) {
  return together([&] {
    std::vector<Tensor> tensors;
    for (const TensorView &view : views) {
      Tensor &tensor = tensors.emplace_back(view.type, view.shape);
      if (view.bytes() != 0)
        std::memcpy(tensor.data(), view.data, view.bytes());
    }
    return training->microBatch(std::move(tensors));
  });
}

StepRecord Engine::step() {
  return together([&] {
    StepRecord record = training->finishStep();
    if (record.isHopeless)
      fail(ErrorCode::Execution, training->findFault(),
           settings.lossScale.constant == 0 ? concat("; the loss scale is ", record.lossScale, ", its minimum")
                                            : std::string());
    return record;
  });
}

Evaluation Engine::evaluate(const std::vector<TensorView> &views) {
  return together([&] {
    live.checkLabels(views, [](int64_t row) { return concat("sample ", row, " of the micro-batch"); });
    return live.evaluate(views);
  });
}

std::string Engine::save(const std::string &folder, const std::string &tag, const nlohmann::json &clientState) {
  TrainingProgress progress = training->progress();
  progress.clientState = clientState;
  SaveOptions saving;
  saving.tag = tag;
  saving.tags = settings.tagValidation == "IGNORE" ? TagValidation::Ignore
                : settings.tagValidation == "FAIL" ? TagValidation::Fail
                                                   : TagValidation::Warn;
  saving.release = training->releaseOfStates();
  return saveCheckpoint(folder, progress, training->parts(), saving, *others);
}

nlohmann::json Engine::load(const std::string &folder, const std::string &tag) {
  return together([&] {
    Checkpoint checkpoint(folder, tag);
    training->abandonStep();
    training->restore(checkpoint);
    return checkpoint.progress().clientState;
  });
}

} // namespace ds
