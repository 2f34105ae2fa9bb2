// What no single key shows: values that contradict each other, and values that another one takes the effect from.
#include "frontends/config/Values.h"

namespace ds::config {

namespace {
class Together {
public:
  Together(TrainingConfig &config, const GivenKeys &given, Problems &problems)
      : config(config), given(given), problems(problems) {}

  void run() {
    optimizer();
    schedule();
    precision();
    section("fp16", config.isFp16);
    section("tensorboard", config.tensorboard.isEnabled);
    section("progressive_layer_drop", config.dropsLayers);
    quantization();
    section("flops_profiler", config.flopsProfiler.isEnabled);
    checkRanksTogether(config, given, problems);
  }

private:
  std::string valueOf(const std::string &key) const {
    const Entry *entry = config.find(key);
    return entry ? entry->value : "nothing";
  }

  // The key that the file gives is to blame.
  void contradict(const std::string &key, const std::string &other, const std::string &expected) {
    bool isGiven = given.find(key) || !given.find(other);
    problems.add(given.placeOf(isGiven ? key : other), key, ": found ", valueOf(key), " with ", other, " ",
                 valueOf(other), ", expected ", expected);
  }

  void ordered(const std::string &low, const std::string &high, bool isOrdered) {
    if (!isOrdered)
      contradict(low, high, "at most that");
  }

  void note(const std::string &key, const std::string &text) {
    for (Entry &entry : config.entries)
      if (entry.key == key)
        entry.note += (entry.note.empty() ? "" : "; ") + text;
  }

  // Whether the file gives another value than the default: what it asks for must happen. A default asks for nothing.
  bool isChosen(const std::string &key) const {
    const Given *found = given.find(key);
    const KeySpec *spec = findKey(key, kindOf(key, given.optimizer, given.scheduler));
    return found && spec && !found->value.is_null() &&
           (spec->fallback.empty() || found->value != nlohmann::json::parse(spec->fallback));
  }

  void refuseIdle(std::initializer_list<const char *> keys, const std::string &other, const std::string &expected) {
    for (const char *key : keys)
      if (isChosen(key))
        contradict(key, other, expected);
  }

  // Files of DeepSpeed keep the values of sections that they switch off; a section that nobody switches is a mistake.
  void section(const std::string &name, bool isOn) {
    const std::string prefix = name + ".", enabled = prefix + "enabled";
    if (isOn)
      return;
    for (Entry &entry : config.entries) {
      if (entry.source != Source::File || entry.key.rfind(prefix, 0) != 0 || entry.key == enabled || !entry.isUsed)
        continue;
      if (given.find(enabled)) {
        entry.note = "switched off";
        entry.isUsed = false;
      } else if (isChosen(entry.key)) {
        problems.add(given.placeOf(entry.key), entry.key, ": found ", entry.value, " without ", enabled, ", expected ",
                     enabled, " true, or false to keep the section switched off");
      }
    }
  }

  void optimizer() {
    const OptimizerConfig &o = config.optimizer;
    const std::string params = "optimizer.params.", type = given.optimizer;
    if (o.isNesterov && o.momentum == 0)
      contradict(params + "nesterov", params + "momentum", "a momentum above 0");
    if (o.momentum == 0)
      refuseIdle({"optimizer.params.dampening"}, params + "momentum", "a momentum above 0");
    if (o.isNesterov && o.dampening != 0)
      contradict(params + "nesterov", params + "dampening", "a dampening of 0");
    ordered(params + "min_coeff", params + "max_coeff", o.minCoeff <= o.maxCoeff);
    if (type == "Adam")
      note("optimizer.type", o.isDecoupled ? "decoupled decay, as AdamW" : "decay in the gradient");
    if (type == "ZeroOneAdam" && config.ranks == 1)
      note("optimizer.type", "one rank compresses no messages: runs as Adam");
    if (o.compresses && config.zero.stage == 1)
      note("zero_optimization.stage", "each rank has all states of the optimizer: momentum is compressed as a whole");
  }

  void schedule() {
    const ScheduleSettings &s = config.schedule;
    const std::string params = "scheduler.params.";
    if (s.kind == ScheduleKind::Constant)
      return;
    if (s.kind != ScheduleKind::WarmupCosineLR)
      note("optimizer.params.lr", "replaced by the scheduler");
    if (s.kind == ScheduleKind::OneCycle) {
      ordered(params + "cycle_min_lr", params + "cycle_max_lr", s.cycleMinLr <= s.cycleMaxLr);
      ordered(params + "cycle_min_mom", params + "cycle_max_mom", s.cycleMinMom <= s.cycleMaxMom);
      cycle();
    } else if (s.kind == ScheduleKind::WarmupLR || s.kind == ScheduleKind::WarmupDecayLR) {
      ordered(params + "warmup_min_lr", params + "warmup_max_lr", s.warmupMinLr <= s.warmupMaxLr);
    }
    bool decays = s.kind == ScheduleKind::WarmupDecayLR || s.kind == ScheduleKind::WarmupCosineLR;
    if (decays && s.totalNumSteps < s.warmupNumSteps)
      note(params + "total_num_steps", "ends before warmup_num_steps");
  }

  void cycle() {
    const std::string params = "scheduler.params.";
    const ScheduleSettings &s = config.schedule;
    const auto momenta = {"scheduler.params.cycle_min_mom", "scheduler.params.cycle_max_mom",
                          "scheduler.params.decay_mom_rate"};
    if (!config.optimizer.hasMomentum()) {
      note(params + "cycle_momentum", "without effect: the optimizer has no momentum");
      if (config.optimizer.kind == OptimizerKind::Sgd)
        refuseIdle(momenta, "optimizer.params.momentum", "a momentum above 0");
      else
        refuseIdle(momenta, "optimizer.type", "an optimizer with momentum");
    } else if (!s.cyclesMomentum) {
      refuseIdle(momenta, params + "cycle_momentum", "true for it");
    }
    if (s.decayStepSize == 0)
      refuseIdle({"scheduler.params.decay_lr_rate", "scheduler.params.decay_mom_rate"}, params + "decay_step_size",
                 "at least 1 for it");
    else if (s.decayLrRate == 0 && s.decayMomRate == 0)
      note(params + "decay_step_size", "without effect: decay_lr_rate and decay_mom_rate are 0");
  }

  void precision() {
    if (config.isFp16 && config.isBf16)
      contradict("bf16.enabled", "fp16.enabled", "one of them");
    if (config.isFp16 && config.lossScale.constant != 0)
      refuseIdle({"fp16.initial_scale_power", "fp16.loss_scale_window", "fp16.hysteresis",
                  "fp16.consecutive_hysteresis", "fp16.min_loss_scale"},
                 "fp16.loss_scale", "a loss_scale of 0, which adapts it");
    bool isDynamic = config.isFp16 && config.lossScale.constant == 0;
    if (isDynamic && config.lossScale.minimum > config.lossScale.initial)
      contradict("fp16.min_loss_scale", "fp16.initial_scale_power", "at most 2 to that power");
  }

  void quantization() {
    const QuantizationSettings &q = config.quantization;
    const std::string name = "quantize_training", bits = name + ".quantize_bits.", algo = name + ".quantize_algo.";
    section(name, q.isEnabled);
    if (!q.isEnabled)
      return;
    section(name + ".fp16_mixed_quantize", q.isMixed);
    section(name + ".eigenvalue", q.eigenvalue.isEnabled);
    const std::string eigenvalue = name + ".eigenvalue.";
    if (q.eigenvalue.isEnabled && q.eigenvalue.layers == 0)
      contradict(eigenvalue + "layer_num", eigenvalue + "enabled", "the number of layers, at least 1");
    if (q.eigenvalue.isEnabled && q.eigenvalue.layerName.empty())
      contradict(eigenvalue + "layer_name", eigenvalue + "enabled", "the path of the layers, as bert.encoder.layer");
    ordered(bits + "target_bits", bits + "start_bits", q.targetBits <= q.startBits);
    if (q.targetBits > 2)
      return;
    const std::string least = "at least 3: ternary and binary weights are symmetric and rounded to nearest";
    if (!q.isSymmetric)
      contradict(bits + "target_bits", algo + "q_type", least);
    if (q.isStochastic)
      contradict(bits + "target_bits", algo + "rounding", least);
  }

  TrainingConfig &config;
  const GivenKeys &given;
  Problems &problems;
};
} // namespace

void checkTogether(TrainingConfig &config, const GivenKeys &given, Problems &problems) {
  Together(config, given, problems).run();
}

} // namespace ds::config
