#include "runtime/training/Trainer.h"

#include "runtime/core/Error.h"

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

static bool isOwnNumber(const std::string &name) {
  return name == "loss_weight" || name == "first" || name == "random_seed" || name == "random_step" ||
         name == "random_micro";
}

Trainer::Trainer(std::shared_ptr<const Package> package, const SessionOptions &options)
    : live(std::move(package), options), micro(trainingEntry(live.package(), "micro")),
      updater(trainingEntry(live.package(), "update")), evaluator(trainingEntry(live.package(), "eval")) {
  for (const TensorInfo &input : live.entry(micro).inputs)
    if (!isOwnNumber(input.name))
      fields.push_back(input);
    else
      hasFirst |= input.name == "first";
  for (const StateInfo &state : live.entry(evaluator).states)
    (state.isStatistic ? running : names).push_back(state.name);
  std::set<std::string> others(names.begin(), names.end());
  for (const std::string &name : names)
    others.insert(gradientOf(name));
  for (const std::string &name : running)
    others.insert({name, movedOf(name)});
  for (const StateInfo &state : live.entry(updater).states)
    if (!others.count(state.name))
      kept.push_back(state.name);
  for (const TensorInfo &output : live.entry(evaluator).outputs)
    if (!isScore(output.name))
      outputNames.push_back(output.name);
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
      Tensor &tensor = storage.emplace_back(input.type, Shape());
      if (input.type == ElementType::I64)
        std::memcpy(tensor.data(), &number->integer, sizeof(number->integer));
      else
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

double Trainer::microBatch(const std::vector<TensorView> &views, double weight, bool isFirst, const RandomPlace &random,
                           LaunchObserver *observer) {
  std::vector<Tensor> storage, outputs;
  const EntryInfo &entry = live.entry(micro);
  checkLabels(views, [](int64_t row) { return concat("sample ", row, " of the micro-batch"); });
  std::vector<Number> numbers = {{"loss_weight", weight},
                                 {"first", isFirst ? 1.0 : 0.0},
                                 {"random_seed", 0, static_cast<int64_t>(random.seed)},
                                 {"random_step", 0, random.step},
                                 {"random_micro", 0, random.micro}};
  live.run(micro, bind(entry, views, numbers, storage), {}, outputs, observer);
  return loadDouble(outputs[0].getType(), outputs[0].data(), 0);
}

void Trainer::forgetGradients() {
  live.withStates([&](StateStore &states) {
    for (const std::string &name : names)
      states.forget(gradientOf(name));
    for (const std::string &name : running)
      states.forget(movedOf(name));
  });
}

void Trainer::beginStatistics() {
  live.withStates([&](StateStore &states) {
    for (const std::string &name : running)
      states.copy(name, movedOf(name));
  });
}

void Trainer::zeroGradients() {
  live.withStates([&](StateStore &states) {
    for (const std::string &name : names)
      states.zero(gradientOf(name));
    for (const std::string &name : running)
      states.zero(movedOf(name)); // beginStatistics fills it
  });
}

std::pair<std::string, double> Trainer::greatestGradient() {
  std::pair<std::string, double> greatest;
  live.withStates([&](StateStore &states) {
    for (NamedView &state : states.views())
      for (const std::string &name : names) {
        if (state.name != gradientOf(name))
          continue;
        int64_t count = elementCount(state.view.shape);
        for (int64_t i = 0; i < count; ++i)
          if (double x = std::abs(loadDouble(state.view.type, state.view.data, static_cast<size_t>(i)));
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
    if (!wanted.count(tensor.name) && tensor.file.rfind("optimizer", 0) != 0)
      fail(ErrorCode::InvalidArgument, checkpoint.path(), ": holds '", tensor.name,
           "' as trained, which the package does not train: expected one of the same parameters");
  live.withStates([&](StateStore &states) { states.restore(checkpoint); });
}

void Trainer::touchStates() {
  live.withStates([&](StateStore &states) {
    for (const StateInfo &state : live.entry(updater).states) {
      Shape shape;
      for (const SizeExpr &size : state.shape)
        shape.push_back(size.evaluate({}));
      states.acquire(state, shape);
    }
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
    for (NamedView &view : states.views())
      if (auto found = places.find(view.name); found != places.end())
        parts[found->second].tensors.push_back(view);
  });
  parts.erase(
      std::remove_if(parts.begin(), parts.end(), [](const CheckpointPart &part) { return part.tensors.empty(); }),
      parts.end());
  return parts;
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
  live.run(updater,
           bind(live.entry(updater), {},
                {{"learning_rate", numbers.learningRate},
                 {"momentum", numbers.momentum},
                 {"step", static_cast<double>(numbers.step)},
                 {"loss_scale", numbers.lossScale}},
                storage),
           {}, outputs, observer);
  return {loadDouble(outputs[0].getType(), outputs[0].data(), 0),
          loadInteger(outputs[1].getType(), outputs[1].data(), 0) != 0};
}

Evaluation Trainer::evaluate(const std::vector<TensorView> &views) {
  std::vector<Tensor> storage, outputs;
  const EntryInfo &entry = live.entry(evaluator);
  live.run(evaluator, bind(entry, views, {}, storage), {}, outputs);
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
