// What a compiled package takes from another file. The inputs of its step are learning rate, momentum, the number of
// the step and the loss scale; the rest of the optimizer is code.
#include "frontends/config/Values.h"

#include <set>

namespace ds::config {
using nlohmann::json;

namespace {
class Comparison {
public:
  Comparison(const TrainingConfig &compiled, const TrainingConfig &given, const PackageTraits &package)
      : compiled(compiled), given(given), package(package) {}

  Differences run() {
    optimizer();
    std::set<std::string> seen;
    for (const KeySpec &key : keys()) {
      std::string path(key.path);
      // What one rank runs without effect may be said in any way.
      bool isOfRanks = key.use == KeyUse::Ranks && key.change == KeyChange::Compiled && given.ranks > 1;
      bool isCompared =
          (key.use == KeyUse::Applies || isOfRanks) && !key.isSection() && path.rfind("optimizer.", 0) != 0;
      if (isCompared && seen.insert(path).second)
        add(path, valueOf(compiled, key), valueOf(given, key), isFree(key));
    }
    return std::move(differences);
  }

private:
  static std::string valueOf(const TrainingConfig &config, const KeySpec &key) {
    const Entry *entry = config.find(std::string(key.path));
    if (!entry && key.use == KeyUse::Ranks)
      return json::parse(key.fallback).dump();
    return entry ? entry->value : "nothing";
  }

  bool isFree(const KeySpec &key) const {
    switch (key.change) {
    case KeyChange::Free: return true;
    case KeyChange::Compiled: return false;
    case KeyChange::Batch: return key.path == "train_batch_size" || package.hasDynamicBatch;
    case KeyChange::Accumulation: return package.accumulates;
    }
    return false;
  }

  void add(const std::string &key, const std::string &before, const std::string &after, bool isFree) {
    if (before != after)
      (isFree ? differences.allowed : differences.refused).push_back({key, before, after});
  }

  template <typename T> void member(const char *key, T before, T after, bool isFree = false) {
    add(key, json(before).dump(), json(after).dump(), isFree);
  }

  static std::string rule(const OptimizerConfig &o) {
    std::string text = optimizerText(o);
    return text.substr(0, text.find(','));
  }

  // By what is computed, not by name: AdamW and Adam in its decoupled mode are one rule.
  void optimizer() {
    const OptimizerConfig &a = compiled.optimizer, &b = given.optimizer;
    if (rule(a) != rule(b))
      return add("optimizer.type", json(rule(a)).dump(), json(rule(b)).dump(), false);
    member("optimizer.params.lr", a.lr, b.lr, true);
    bool isSgd = a.kind == OptimizerKind::Sgd;
    // SGD without momentum was compiled without its state.
    member(isSgd ? "optimizer.params.momentum" : "optimizer.params.betas[0]", a.momentum, b.momentum,
           a.hasMomentum() == b.hasMomentum());
    member("optimizer.params.betas[1]", a.beta2, b.beta2);
    member("optimizer.params.eps", a.eps, b.eps);
    member("optimizer.params.weight_decay", a.weightDecay, b.weightDecay);
    member("optimizer.params.bias_correction", a.correctsBias, b.correctsBias);
    member("optimizer.params.dampening", a.dampening, b.dampening);
    member("optimizer.params.nesterov", a.isNesterov, b.isNesterov);
    member("optimizer.params.max_coeff", a.maxCoeff, b.maxCoeff);
    member("optimizer.params.min_coeff", a.minCoeff, b.minCoeff);
    member("optimizer.params.eps_inside_sqrt", a.hasEpsInside, b.hasEpsInside);
    member("optimizer.params.lr_decay", a.lrDecay, b.lrDecay);
    member("optimizer.params.initial_accumulator_value", a.initialAccumulator, b.initialAccumulator);
  }

  const TrainingConfig &compiled, &given;
  const PackageTraits &package;
  Differences differences;
};
} // namespace

Differences changes(const TrainingConfig &compiled, const TrainingConfig &given, const PackageTraits &package) {
  return Comparison(compiled, given, package).run();
}

} // namespace ds::config
