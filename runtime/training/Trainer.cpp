#include "runtime/training/Trainer.h"

#include "runtime/core/Error.h"
#include "runtime/training/CompiledSettings.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

namespace ds {

size_t trainingEntry(const Package &package, const std::string &name) {
  const std::vector<EntryInfo> &entries = package.variant().entries;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].name == name)
      return i;
  fail(ErrorCode::InvalidArgument, "the package has no entry '", name, "': ds-opt writes it with --mode=train");
}

static bool isScore(const std::string &name) { return name == "loss" || name == "counted" || name == "correct"; }

static bool isOfLayer(const std::string &name) {
  for (const char *kind : {"layer_gate/", "layer_scale/", "layer_first/", "layer_ran/"})
    if (name.rfind(kind, 0) == 0)
      return true;
  return false;
}

static bool isOwnNumber(const std::string &name) {
  return name == "loss_weight" || name == "first" || name == "last" || name == "random_seed" || name == "random_step" ||
         name == "random_micro" || name.rfind("quantize_", 0) == 0;
}

Trainer::Trainer(std::shared_ptr<const Package> package, const SessionOptions &options)
    : live(std::move(package), options), micro(trainingEntry(live.package(), "micro")),
      updater(trainingEntry(live.package(), "update")), evaluator(trainingEntry(live.package(), "eval")) {
  if (const std::optional<TrainingInfo> &training = live.package().manifest().training)
    layerNames = training->layers;
  hasGradients.assign(layerNames.size(), true); // states begin with zeros
  for (const TensorInfo &input : live.entry(micro).inputs)
    if (!isOwnNumber(input.name) && (layerNames.empty() || !isOfLayer(input.name)))
      fields.push_back(input);
    else
      hasFirst |= input.name == "first";
  for (const StateInfo &state : live.entry(evaluator).states)
    for (const std::string &name : tensorsOf(state))
      (state.isStatistic ? running : names).push_back(name);
  std::set<std::string> others(names.begin(), names.end());
  for (const std::string &name : names)
    others.insert(gradientOf(name));
  for (const std::string &name : running)
    others.insert({name, movedOf(name)});
  const CompiledSettings settings = compiledSettings(live.package().manifest());
  freezeStep = settings.freezeStep;
  const std::vector<EntryInfo> &entries = live.package().variant().entries;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].name == "update_compressed")
      compressed = i;
  std::set<std::string> seen = others;
  for (size_t entry : updates())
    for (const StateInfo &state : live.entry(entry).states)
      for (const std::string &name : tensorsOf(state))
        if (seen.insert(name).second)
          kept.push_back(name);
  for (const StateInfo &state : live.entry(micro).states)
    for (const std::string &name : tensorsOf(state))
      if (others.count(name) && name.size() > gradientOf("").size() &&
          name.compare(name.size() - gradientOf("").size(), std::string::npos, gradientOf("")) == 0 &&
          std::find(names.begin(), names.end(), name) == names.end() &&
          (gradients.empty() || gradients.back() != state.name))
        gradients.push_back(state.name);
  for (const StateInfo &state : live.entry(updater).states)
    if (state.part == StatePart::View && state.suffix == gradientOf(""))
      gradients.push_back(state.name);
  for (const TensorInfo &output : live.entry(evaluator).outputs)
    if (!isScore(output.name))
      outputNames.push_back(output.name);
  setQuantization(settings.quantization);
}

// What a state is called where it has a tensor of its own, and where it is a rank's part of several, all of these. A
// view shows states that are there besides.
std::vector<std::string> Trainer::tensorsOf(const StateInfo &state) const {
  if (state.part == StatePart::View)
    return {};
  if (state.part != StatePart::Shard && state.part != StatePart::Worker)
    return {state.name};
  std::vector<std::string> tensors;
  bool isMaster = state.suffix == masterSuffix; // under the parameter's name
  for (const UnitTensor &tensor : package().variant().units[state.unit].tensors)
    tensors.push_back(tensor.name + (isMaster ? "" : state.suffix));
  return tensors;
}

void Trainer::setQuantization(const QuantizationSettings &settings) {
  const std::optional<TrainingInfo> &training = package().manifest().training;
  if (!training || training->quantized.empty())
    return;
  constexpr int64_t most = 1'000'001; // of blocks
  int64_t last = 0;
  for (const QuantizedParameter &parameter : training->quantized)
    last = std::max(last, parameter.block);
  for (const TensorInfo &input : live.entry(evaluator).inputs) {
    if (input.name != "quantize_levels" || input.shape.size() != 1)
      continue;
    int64_t blocks = input.shape[0].isConstant() ? input.shape[0].evaluate({}) : 0;
    if (blocks <= last || blocks > most)
      fail(ErrorCode::BadPackage, "entry 'eval': input 'quantize_levels': found ", input.shape[0].text(),
           " elements, expected a constant above ", last, ", the last block of 'training.quantized', and at most ",
           most);
    schedule.emplace(settings, static_cast<size_t>(blocks));
  }
}

void Trainer::addWidths(std::vector<Number> &numbers) const {
  if (!schedule)
    return;
  Number levels = {"quantize_levels", 0}, shares = {"quantize_shares", 0};
  for (size_t i = 0; i < schedule->blocks(); ++i) {
    levels.list.push_back(schedule->levels(i));
    shares.list.push_back(schedule->share(i));
  }
  numbers.push_back(levels);
  numbers.push_back(shares);
  numbers.push_back({"quantize_seed", 0, static_cast<int64_t>(roundingSeed)});
  numbers.push_back({"quantize_step", 0, schedule->updates()}); // a skipped step draws the same once more
}

std::vector<std::pair<std::string, Tensor>> Trainer::images() {
  std::vector<std::pair<std::string, Tensor>> result;
  if (!schedule)
    return result;
  std::vector<Tensor> storage, outputs;
  std::vector<Number> numbers;
  addWidths(numbers);
  size_t entry = trainingEntry(package(), "quantize");
  live.run(entry, bind(live.entry(entry), {}, numbers, storage), {}, outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    result.emplace_back(live.entry(entry).outputs[i].name, std::move(outputs[i]));
  return result;
}

// Box and Muller 1958, by SplitMix64 (Steele et al. 2014): the same numbers with every library.
void Trainer::drawDirections(uint64_t seed) {
  auto uniform = [&seed] { // in (0, 1]
    uint64_t z = seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 1) * 0x1p-53;
  };
  const std::string suffix = "/direction";
  live.withStates([&](StateStore &states) {
    for (const StateInfo &state : live.entry(trainingEntry(package(), "curvature")).states) {
      bool isDirection = state.name.size() > suffix.size() &&
                         state.name.compare(state.name.size() - suffix.size(), suffix.size(), suffix) == 0;
      if (!isDirection || state.initial) // a parameter may have such a name, too
        continue;
      Shape shape;
      for (const SizeExpr &size : state.shape)
        shape.push_back(size.evaluate({}));
      Tensor &tensor = states.acquire(state, shape).tensor;
      int64_t count = elementCount(shape);
      for (int64_t i = 0; i < count; ++i) {
        double radius = std::sqrt(-2 * std::log(uniform()));
        storeDouble(state.type, tensor.data(), static_cast<size_t>(i),
                    radius * std::cos(2 * std::acos(-1.0) * uniform()));
      }
    }
    states.endCall();
  });
}

double Trainer::curvature(const std::vector<TensorView> &views, int64_t layer, double weight) {
  std::vector<Tensor> storage, outputs;
  std::vector<Number> numbers = {{"loss_weight", weight}, {"curvature_block", 0, layer}};
  addWidths(numbers);
  size_t entry = trainingEntry(package(), "curvature");
  live.run(entry, bind(live.entry(entry), views, numbers, storage), {}, outputs);
  return loadDouble(outputs[0].getType(), outputs[0].data(), 0);
}

static constexpr char widthsKey[] = "quantization";

void Trainer::keepWidths(TrainingProgress &progress) const {
  if (schedule)
    progress.trainer[widthsKey] = schedule->state();
}

std::optional<BitSchedule> Trainer::widthsIn(const Checkpoint &checkpoint) const {
  const nlohmann::json &own = checkpoint.progress().trainer;
  bool isThere = own.is_object() && own.contains(widthsKey);
  if (isThere != schedule.has_value())
    fail(ErrorCode::InvalidArgument, checkpoint.path(), ": was saved ", isThere ? "with" : "without",
         " quantize_training, expected a package that was compiled ", isThere ? "with" : "without", " it");
  std::optional<BitSchedule> widths = schedule;
  if (widths)
    annotated(checkpoint.path(), [&] { widths->restore(own[widthsKey]); });
  return widths;
}

void Trainer::checkLabels(const std::vector<TensorView> &views, const RowName &place) const {
  ds::checkLabels(package(), fields, views, place);
}

void checkLabels(const Package &package, const std::vector<TensorInfo> &fields, const std::vector<TensorView> &views,
                 const RowName &place) {
  const std::optional<TrainingInfo> &training = package.manifest().training;
  if (!training || !training->classes)
    return;
  for (size_t i = 0; i < fields.size() && i < views.size(); ++i) {
    if (fields[i].name != training->labels)
      continue;
    const TensorView &view = views[i];
    if (view.type != fields[i].type || view.shape.size() != fields[i].shape.size() || !view.data)
      continue; // the call says what is wrong
    int64_t count = elementCount(view.shape), rows = view.shape.empty() ? 1 : view.shape[0];
    for (int64_t at = 0; at < count; ++at) {
      int64_t label = loadInteger(view.type, view.data, static_cast<size_t>(at));
      if ((label >= 0 && label < *training->classes) || label == training->ignoredLabel)
        continue;
      int64_t perRow = count / std::max<int64_t>(rows, 1);
      fail(ErrorCode::InvalidArgument, "input '", training->labels, "': ", place(at / perRow), ", element ",
           at % perRow, ": found label ", label, ", expected 0 to ", *training->classes - 1, ", or ",
           training->ignoredLabel, " for none");
    }
  }
}

std::vector<TensorView> Trainer::bind(const EntryInfo &entry, const std::vector<TensorView> &views,
                                      const std::vector<Number> &numbers, std::vector<Tensor> &storage) const {
  std::vector<TensorView> bound;
  storage.reserve(numbers.size());
  for (const TensorInfo &input : entry.inputs) {
    auto number = std::find_if(numbers.begin(), numbers.end(), [&](const Number &n) { return n.name == input.name; });
    if (number != numbers.end()) {
      const std::vector<double> &list = number->list;
      Tensor &tensor =
          storage.emplace_back(input.type, list.empty() ? Shape() : Shape{static_cast<int64_t>(list.size())});
      for (size_t i = 0; i < list.size(); ++i)
        storeDouble(input.type, tensor.data(), i, list[i]);
      if (list.empty() && input.type == ElementType::I64)
        std::memcpy(tensor.data(), &number->integer, sizeof(number->integer));
      else if (list.empty())
        storeDouble(input.type, tensor.data(), 0, number->value);
      bound.push_back(tensor.view());
      continue;
    }
    auto field =
        std::find_if(fields.begin(), fields.end(), [&](const TensorInfo &info) { return info.name == input.name; });
    size_t place = static_cast<size_t>(field - fields.begin());
    if (place >= views.size())
      fail(ErrorCode::InvalidArgument, "expected ", fields.size(), " tensors of a micro-batch, found ", views.size());
    bound.push_back(views[place]);
  }
  return bound;
}

double Trainer::microBatch(const std::vector<TensorView> &views, double weight, MicroPlace at,
                           const RandomPlace &random, const std::vector<LayerGate> &gates, LaunchObserver *observer) {
  if (!gates.empty() && gates.size() != layerNames.size())
    fail(ErrorCode::InvalidArgument, "gates of layers: found ", gates.size(), ", expected ", layerNames.size());
  std::vector<Tensor> storage, outputs;
  const EntryInfo &entry = live.entry(micro);
  checkLabels(views, [](int64_t row) { return concat("sample ", row, " of the micro-batch"); });
  std::vector<Number> numbers = {{"loss_weight", weight},         {"first", at.isFirst ? 1.0 : 0.0},
                                 {"last", at.isLast ? 1.0 : 0.0}, {"random_seed", 0, static_cast<int64_t>(random.seed)},
                                 {"random_step", 0, random.step}, {"random_micro", 0, random.micro}};
  if (at.isFirst)
    hasGradients.assign(layerNames.size(), false);
  std::vector<bool> after = hasGradients;
  for (size_t layer = 0; layer < layerNames.size(); ++layer) {
    LayerGate gate = gates.empty() ? LayerGate() : gates[layer];
    numbers.push_back({concat("layer_gate/", layer), gate.runs ? 1.0 : 0.0});
    numbers.push_back({concat("layer_scale/", layer), gate.scale});
    numbers.push_back({concat("layer_first/", layer), hasGradients[layer] ? 0.0 : 1.0});
    after[layer] = hasGradients[layer] || gate.runs;
  }
  addWidths(numbers);
  live.run(micro, bind(entry, views, numbers, storage), {}, outputs, observer);
  hasGradients = after;
  return loadDouble(outputs[0].getType(), outputs[0].data(), 0);
}

void Trainer::forgetGradients() {
  hasGradients.assign(layerNames.size(), true); // states begin with zeros again
  live.withStates([&](StateStore &states) {
    for (const std::string &name : gradients)
      states.forget(name);
    for (const std::string &name : running)
      states.forget(movedOf(name));
  });
}

void Trainer::beginStatistics() {
  // Parameters that are on their way are none of them.
  std::vector<std::string> all = running;
  for (const std::string &name : running)
    all.push_back(movedOf(name));
  live.withStates(all, [&](StateStore &states) {
    for (const std::string &name : running)
      states.copy(name, movedOf(name));
  });
}

std::vector<Tensor> Trainer::movedStatistics() {
  std::vector<Tensor> values(running.size());
  live.withStates([&](StateStore &states) {
    for (NamedView &state : states.views())
      for (size_t i = 0; i < running.size(); ++i)
        if (state.name == movedOf(running[i])) {
          values[i].reset(state.view.type, state.view.shape);
          std::memcpy(values[i].data(), state.view.data, state.view.bytes());
        }
  });
  return values;
}

void Trainer::setMovedStatistics(const std::vector<Tensor> &values) {
  live.withStates([&](StateStore &states) {
    for (const StateInfo &state : live.entry(micro).states)
      for (size_t i = 0; i < running.size(); ++i)
        if (state.name == movedOf(running[i]))
          std::memcpy(states.acquire(state, values[i].getShape()).tensor.data(), values[i].data(), values[i].bytes());
    states.endCall();
  });
}

void Trainer::zeroGradients() {
  hasGradients.assign(layerNames.size(), true);
  live.withStates([&](StateStore &states) {
    for (const std::string &name : gradients)
      states.zero(name);
    for (const std::string &name : running)
      states.zero(movedOf(name)); // beginStatistics fills it
  });
}

bool Trainer::travelAsHalf() const {
  const std::vector<CollectiveInfo> &sites = live.entry(micro).collectives;
  return std::any_of(sites.begin(), sites.end(), [](const CollectiveInfo &site) {
    return site.wire == ElementType::F16 && site.type != ElementType::F16;
  });
}

bool Trainer::areKeptAsHalf() const {
  const std::vector<StateInfo> &states = live.entry(micro).states;
  return std::any_of(states.begin(), states.end(), [&](const StateInfo &state) {
    return state.type == ElementType::F16 &&
           std::find(gradients.begin(), gradients.end(), state.name) != gradients.end();
  });
}

std::pair<std::string, double> Trainer::greatestGradient() {
  std::pair<std::string, double> greatest;
  live.withStates([&](StateStore &states) {
    for (const StatePiece &state : states.pieces())
      for (const std::string &name : names) {
        if (state.name != gradientOf(name))
          continue;
        for (int64_t i = 0; i < state.end - state.begin; ++i)
          if (double x = std::abs(loadDouble(state.type, state.data, static_cast<size_t>(i)));
              greatest.first.empty() || x > greatest.second)
            greatest = {name, x};
      }
  });
  return greatest;
}

void Trainer::restoreParameters(Checkpoint &checkpoint) {
  std::set<std::string> missing(names.begin(), names.end());
  missing.insert(running.begin(), running.end());
  std::set<std::string> wanted = missing;
  checkpoint.select([&](const std::string &name) { return wanted.count(name) > 0; });
  for (const TensorSource::Item &item : checkpoint.items())
    missing.erase(item.name);
  if (!missing.empty())
    fail(ErrorCode::InvalidArgument, checkpoint.path(), ": has no tensor '", *missing.begin(), "'");
  // As a resumed run says: another model would be judged than the one that was trained.
  for (const CheckpointTensor &tensor : checkpoint.contents().tensors)
    if (!wanted.count(tensor.name) && !tensor.isIn("optimizer"))
      fail(ErrorCode::InvalidArgument, checkpoint.path(), ": holds '", tensor.name,
           "' as trained, which the package does not train: expected one of the same parameters");
  std::optional<BitSchedule> widths = widthsIn(checkpoint);
  live.withStates([&](StateStore &states) { states.restore(checkpoint); });
  setWidths(std::move(widths));
  roundingSeed = checkpoint.progress().seed;
}

void Trainer::touchStates() {
  live.withStates([&](StateStore &states) {
    for (size_t entry : updates())
      for (const StateInfo &state : live.entry(entry).states)
        states.acquire(state, live.shapeOf(entry, state));
    states.endCall();
  });
}

std::vector<CheckpointPart> Trainer::parts() {
  std::map<std::string, size_t> places;
  std::vector<CheckpointPart> parts = {{"parameters", {}}, {"statistics", {}}, {"optimizer", {}}};
  size_t place = 0;
  for (const auto *part : {&names, &running, &kept}) {
    for (const std::string &name : *part)
      places[name] = place;
    ++place;
  }
  touchStates(); // a checkpoint before the first step has all of them, too
  live.withStates([&](StateStore &states) {
    for (const StatePiece &piece : states.pieces())
      if (auto found = places.find(piece.name); found != places.end())
        parts[found->second].tensors.emplace_back(piece.name, piece.type, piece.shape, piece.begin, piece.end,
                                                  piece.data);
  });
  parts.erase(
      std::remove_if(parts.begin(), parts.end(), [](const CheckpointPart &part) { return part.tensors.empty(); }),
      parts.end());
  return parts;
}

std::function<void(const void *, size_t)> Trainer::releaseOfStates() {
  return [this](const void *memory, size_t bytes) {
    live.withStates([&](StateStore &states) { states.release(memory, bytes); });
  };
}

void Trainer::requireAll(const Checkpoint &checkpoint) const {
  std::set<std::string> missing(names.begin(), names.end());
  missing.insert(running.begin(), running.end());
  missing.insert(kept.begin(), kept.end());
  for (const TensorSource::Item &item : checkpoint.items())
    missing.erase(item.name);
  if (!missing.empty())
    fail(ErrorCode::InvalidArgument, checkpoint.path(), ": has no tensor '", *missing.begin(), "'",
         missing.size() > 1 ? concat(" and ", missing.size() - 1, " others") : std::string(),
         ", which the package trains with");
}

StepResult Trainer::update(const StepNumbers &numbers, LaunchObserver *observer) {
  std::vector<Tensor> storage, outputs;
  std::vector<Number> given = {{"learning_rate", numbers.learningRate},
                               {"momentum", numbers.momentum},
                               {"step", static_cast<double>(numbers.step)},
                               {"loss_scale", numbers.lossScale}};
  for (size_t layer = 0; layer < layerNames.size(); ++layer)
    given.push_back({concat("layer_ran/", layer), hasGradients[layer] ? 1.0 : 0.0});
  if (isFrozenAt(numbers.step))
    return updateFrozen(std::move(given), observer);
  live.run(updater, bind(live.entry(updater), {}, given, storage), {}, outputs, observer);
  StepResult result = {loadDouble(outputs[0].getType(), outputs[0].data(), 0),
                       loadInteger(outputs[1].getType(), outputs[1].data(), 0) != 0};
  if (schedule && result.isFinite)
    schedule->advance();
  return result;
}

// The norm comes first, in an entry of its own: it is the same on all ranks, so that all go on or none does.
StepResult Trainer::updateFrozen(std::vector<Number> numbers, LaunchObserver *observer) {
  numbers.push_back({"ranks", static_cast<double>(mesh().ranks)});
  std::vector<Tensor> storage, outputs;
  size_t norm = trainingEntry(package(), "local_norm");
  live.run(norm, bind(live.entry(norm), {}, numbers, storage), {}, outputs, observer);
  StepResult result = {loadDouble(outputs[0].getType(), outputs[0].data(), 0),
                       loadInteger(outputs[1].getType(), outputs[1].data(), 0) != 0, /*isFrozen=*/true};
  if (!result.isFinite)
    return result;
  numbers.push_back({"grad_norm", result.gradNorm});
  storage.clear();
  live.run(*compressed, bind(live.entry(*compressed), {}, numbers, storage), {}, outputs, observer);
  if (schedule)
    schedule->advance();
  return result;
}

Evaluation Trainer::evaluate(const std::vector<TensorView> &views) {
  std::vector<Tensor> storage, outputs;
  const EntryInfo &entry = live.entry(evaluator);
  std::vector<Number> numbers;
  addWidths(numbers);
  live.run(evaluator, bind(entry, views, numbers, storage), {}, outputs);
  Evaluation result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string &name = entry.outputs[i].name;
    if (name == "loss")
      result.loss = loadDouble(outputs[i].getType(), outputs[i].data(), 0);
    else if (name == "counted")
      result.counted = loadInteger(outputs[i].getType(), outputs[i].data(), 0);
    else if (name == "correct")
      result.correct = loadInteger(outputs[i].getType(), outputs[i].data(), 0);
    else
      result.outputs.push_back(std::move(outputs[i]));
  }
  return result;
}

} // namespace ds
