#include "runtime/training/Trainer.h"

#include "runtime/core/Error.h"

#include <algorithm>

namespace ds {

static size_t findEntry(const Package &package, const std::string &name) {
  const std::vector<EntryInfo> &entries = package.variant().entries;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].name == name)
      return i;
  fail(ErrorCode::InvalidArgument, "the package has no entry '", name, "': ds-opt writes it with --mode=train");
}

static bool isOwnNumber(const std::string &name) { return name == "loss_weight" || name == "first"; }

Trainer::Trainer(std::shared_ptr<const Package> package, const SessionOptions &options)
    : live(std::move(package), options), micro(findEntry(live.package(), "micro")),
      updater(findEntry(live.package(), "update")), evaluator(findEntry(live.package(), "eval")) {
  for (const TensorInfo &input : live.entry(micro).inputs)
    if (!isOwnNumber(input.name))
      fields.push_back(input);
}

std::vector<std::string> Trainer::parameters() const {
  std::vector<std::string> names;
  for (const StateInfo &state : live.entry(evaluator).states)
    names.push_back(state.name);
  return names;
}

std::vector<TensorView> Trainer::bind(const EntryInfo &entry, const std::vector<TensorView> &views,
                                      const std::vector<Number> &numbers, std::vector<Tensor> &storage) const {
  std::vector<TensorView> bound;
  storage.reserve(numbers.size());
  for (const TensorInfo &input : entry.inputs) {
    auto number = std::find_if(numbers.begin(), numbers.end(), [&](const Number &n) { return n.name == input.name; });
    if (number != numbers.end()) {
      Tensor &tensor = storage.emplace_back(input.type, Shape());
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

double Trainer::microBatch(const std::vector<TensorView> &views, double weight, bool isFirst) {
  std::vector<Tensor> storage, outputs;
  const EntryInfo &entry = live.entry(micro);
  live.run(micro, bind(entry, views, {{"loss_weight", weight}, {"first", isFirst ? 1.0 : 0.0}}, storage), {}, outputs);
  return loadDouble(outputs[0].getType(), outputs[0].data(), 0);
}

StepResult Trainer::update(const StepNumbers &numbers) {
  std::vector<Tensor> storage, outputs;
  live.run(updater,
           bind(live.entry(updater), {},
                {{"learning_rate", numbers.learningRate},
                 {"momentum", numbers.momentum},
                 {"step", static_cast<double>(numbers.step)},
                 {"loss_scale", numbers.lossScale}},
                storage),
           {}, outputs);
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
