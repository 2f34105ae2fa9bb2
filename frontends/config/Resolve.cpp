// From the file's keys to a value for every key that applies, and from these to the members of TrainingConfig.
#include "frontends/config/Values.h"
#include "runtime/core/Error.h"

#include <cmath>

namespace ds::config {
using nlohmann::json;

namespace {
std::string jsonText(const json &value) { return value.dump(-1, ' ', true, json::error_handler_t::replace); }

class Entries {
public:
  Entries(const GivenKeys &given, const ReadOptions &options, Problems &problems)
      : given(given), options(options), problems(problems) {}

  std::vector<Entry> run() {
    if (!given.find("optimizer.type"))
      problems.add(given.start, "optimizer.type: missing, expected ", legalText(*findKey("optimizer.type")));
    resolveBatch(given, options, entries, problems);
    for (const KeySpec &key : keys())
      add(key);
    return std::move(entries);
  }

private:
  void add(const KeySpec &key) {
    std::string path(key.path);
    if (key.change == KeyChange::Batch || key.change == KeyChange::Accumulation ||
        !key.isOf(kindOf(path, given.optimizer, given.scheduler)))
      return;
    const Given *found = given.find(path);
    if (found && !found->value.is_null())
      return fromFile(path, *found);
    if (key.use != KeyUse::Applies || key.isSection()) {
      if (found)
        fromFile(path, *found);
      return;
    }
    if (std::string enabled = techniqueSwitch(path); !enabled.empty() && !isOn(enabled))
      return;
    if (!key.fallback.empty()) {
      json value = json::parse(key.fallback);
      // Numbers in the form in which they come from a file, so that equal values have equal texts.
      if (key.type == KeyType::Num)
        value = value.get<double>();
      entries.push_back({path, jsonText(value), Source::Default, 0, "", true});
      return;
    }
    derive(path, found);
  }

  bool isOn(const std::string &path) const {
    const Given *found = given.find(path);
    return found && found->value == json(true);
  }

  void fromFile(const std::string &path, const Given &found) {
    entries.push_back({path, jsonText(found.value), Source::File, found.at.line, found.note, found.isUsed});
  }

  // The second half of a cycle is like the first one; anything else that has no default must be given.
  void derive(const std::string &path, const Given *found) {
    size_t at = path.find("_second_");
    if (at != std::string::npos) {
      std::string first = path.substr(0, at) + "_first_" + path.substr(at + 8);
      for (const Entry &entry : entries)
        if (entry.key == first) {
          entries.push_back(
              {path, std::string(entry.value), Source::Derived, found ? found->at.line : 0, "as " + first, true});
          return;
        }
    }
    std::string type = path.rfind("scheduler.", 0) == 0 ? "scheduler.type" : "optimizer.type";
    if (path != type && given.find(type))
      problems.add(given.placeOf(type), path, ": missing, expected ", legalText(*findKey(path)), " for ",
                   kindOf(path, given.optimizer, given.scheduler));
  }

  const GivenKeys &given;
  const ReadOptions &options;
  Problems &problems;
  std::vector<Entry> entries;
};

// Reads entries into members; what a kind does not have keeps its default.
class Members {
public:
  explicit Members(const TrainingConfig &config) : config(config) {}

  void read(const char *key, double &member) const { get(key, member); }
  void read(const char *key, int64_t &member) const { get(key, member); }
  void read(const char *key, bool &member) const { get(key, member); }
  void read(const char *key, std::string &member) const { get(key, member); }
  json value(const char *key) const {
    const Entry *entry = config.find(key);
    return entry ? json::parse(entry->value, nullptr, false) : json();
  }

private:
  template <typename T> void get(const char *key, T &member) const {
    json found = value(key);
    if (found.is_null())
      return;
    try {
      member = found.get<T>();
    } catch (const json::exception &) {
      fail(ErrorCode::BadPackage, key, ": found ", shown(found), ", expected ", legalText(*findKey(key)));
    }
  }
  const TrainingConfig &config;
};

void readOptimizer(const Members &members, OptimizerConfig &to) {
  std::string type;
  members.read("optimizer.type", type);
  to.kind = type == "SGD" || type == "Momentum"      ? OptimizerKind::Sgd
            : type == "Adagrad"                      ? OptimizerKind::Adagrad
            : type.find("Lamb") == std::string::npos ? OptimizerKind::Adam
                                                     : OptimizerKind::Lamb;
  to.compresses = type == "OneBitAdam" || type == "OneBitLamb";
  if (type == "Adam")
    members.read("optimizer.params.adam_w_mode", to.isDecoupled);
  members.read("optimizer.params.lr", to.lr);
  if (to.kind == OptimizerKind::Sgd || to.kind == OptimizerKind::Adagrad)
    to.momentum = 0;
  members.read("optimizer.params.momentum", to.momentum);
  if (json betas = members.value("optimizer.params.betas"); betas.is_array() && betas.size() == 2) {
    to.momentum = betas[0].get<double>();
    to.beta2 = betas[1].get<double>();
  }
  members.read("optimizer.params.eps", to.eps);
  members.read("optimizer.params.weight_decay", to.weightDecay);
  members.read("optimizer.params.bias_correction", to.correctsBias);
  members.read("optimizer.params.dampening", to.dampening);
  members.read("optimizer.params.nesterov", to.isNesterov);
  members.read("optimizer.params.max_coeff", to.maxCoeff);
  members.read("optimizer.params.min_coeff", to.minCoeff);
  members.read("optimizer.params.eps_inside_sqrt", to.hasEpsInside);
  members.read("optimizer.params.coeff_beta", to.coeffBeta);
  members.read("optimizer.params.factor_max", to.factorMax);
  members.read("optimizer.params.factor_min", to.factorMin);
  members.read("optimizer.params.factor_threshold", to.factorThreshold);
  members.read("optimizer.params.lr_decay", to.lrDecay);
  members.read("optimizer.params.initial_accumulator_value", to.initialAccumulator);
}

void readSchedule(const Members &members, const OptimizerConfig &optimizer, ScheduleSettings &to) {
  static const std::pair<const char *, ScheduleKind> kinds[] = {{"LRRangeTest", ScheduleKind::LRRangeTest},
                                                                {"OneCycle", ScheduleKind::OneCycle},
                                                                {"WarmupLR", ScheduleKind::WarmupLR},
                                                                {"WarmupDecayLR", ScheduleKind::WarmupDecayLR},
                                                                {"WarmupCosineLR", ScheduleKind::WarmupCosineLR}};
  std::string type, warmup;
  members.read("scheduler.type", type);
  for (const auto &[name, kind] : kinds)
    if (type == name)
      to.kind = kind;
  to.lr = optimizer.lr;
  to.momentum = optimizer.momentum;
  members.read("scheduler.params.warmup_min_lr", to.warmupMinLr);
  members.read("scheduler.params.warmup_max_lr", to.warmupMaxLr);
  members.read("scheduler.params.warmup_min_ratio", to.warmupMinRatio);
  members.read("scheduler.params.warmup_num_steps", to.warmupNumSteps);
  members.read("scheduler.params.warmup_type", warmup);
  to.isWarmupLinear = warmup == "linear";
  members.read("scheduler.params.total_num_steps", to.totalNumSteps);
  members.read("scheduler.params.cos_min_ratio", to.cosMinRatio);
  members.read("scheduler.params.lr_range_test_min_lr", to.rangeMinLr);
  members.read("scheduler.params.lr_range_test_step_size", to.rangeStepSize);
  members.read("scheduler.params.lr_range_test_step_rate", to.rangeStepRate);
  members.read("scheduler.params.lr_range_test_staircase", to.isRangeStaircase);
  members.read("scheduler.params.cycle_min_lr", to.cycleMinLr);
  members.read("scheduler.params.cycle_max_lr", to.cycleMaxLr);
  members.read("scheduler.params.decay_lr_rate", to.decayLrRate);
  members.read("scheduler.params.cycle_first_step_size", to.cycleFirstStepSize);
  members.read("scheduler.params.cycle_second_step_size", to.cycleSecondStepSize);
  members.read("scheduler.params.cycle_first_stair_count", to.cycleFirstStairCount);
  members.read("scheduler.params.cycle_second_stair_count", to.cycleSecondStairCount);
  members.read("scheduler.params.decay_step_size", to.decayStepSize);
  members.read("scheduler.params.cycle_momentum", to.cyclesMomentum);
  members.read("scheduler.params.cycle_min_mom", to.cycleMinMom);
  members.read("scheduler.params.cycle_max_mom", to.cycleMaxMom);
  members.read("scheduler.params.decay_mom_rate", to.decayMomRate);
  to.cyclesMomentum &= optimizer.hasMomentum();
}

void readLayerDrop(const Members &members, LayerDropSettings &to) {
  std::string depth;
  members.read("progressive_layer_drop.theta", to.theta);
  members.read("progressive_layer_drop.gamma", to.gamma);
  members.read("progressive_layer_drop.depth_schedule", depth);
  to.isPaper = depth == "paper";
}

void readLossScale(const Members &members, LossScaleSettings &to) {
  int64_t power = 16;
  members.read("fp16.loss_scale", to.constant);
  members.read("fp16.initial_scale_power", power);
  to.initial = std::ldexp(1.0, static_cast<int>(power));
  members.read("fp16.loss_scale_window", to.window);
  members.read("fp16.hysteresis", to.hysteresis);
  members.read("fp16.min_loss_scale", to.minimum);
  members.read("fp16.consecutive_hysteresis", to.isConsecutive);
}

void readQuantization(const Members &members, QuantizationSettings &to) {
  const std::string section = "quantize_training.";
  auto read = [&](const char *key, auto &member) { members.read((section + key).c_str(), member); };
  std::string scheme = "symmetric", rounding = "nearest";
  read("enabled", to.isEnabled);
  read("quantize_verbose", to.isVerbose);
  read("quantize_groups", to.groups);
  read("quantize_bits.start_bits", to.startBits);
  read("quantize_bits.target_bits", to.targetBits);
  read("quantize_schedule.quantize_period", to.period);
  read("quantize_schedule.schedule_offset", to.offset);
  read("quantize_algo.q_type", scheme);
  read("quantize_algo.rounding", rounding);
  read("fp16_mixed_quantize.enabled", to.isMixed);
  read("fp16_mixed_quantize.quantize_change_ratio", to.changeRatio);
  read("eigenvalue.enabled", to.eigenvalue.isEnabled);
  read("eigenvalue.verbose", to.eigenvalue.isVerbose);
  read("eigenvalue.max_iter", to.eigenvalue.maxIterations);
  read("eigenvalue.tol", to.eigenvalue.tolerance);
  read("eigenvalue.stability", to.eigenvalue.stability);
  read("eigenvalue.gas_boundary_resolution", to.eigenvalue.resolution);
  read("eigenvalue.layer_name", to.eigenvalue.layerName);
  read("eigenvalue.layer_num", to.eigenvalue.layers);
  to.isSymmetric = scheme == "symmetric";
  to.isStochastic = rounding == "stochastic";
}
} // namespace

std::vector<Entry> resolveEntries(const GivenKeys &given, const ReadOptions &options, Problems &problems) {
  return Entries(given, options, problems).run();
}

void assignMembers(TrainingConfig &config) {
  Members members(config);
  members.read("train_batch_size", config.trainBatch);
  members.read("train_micro_batch_size_per_gpu", config.microBatch);
  members.read("gradient_accumulation_steps", config.accumulation);
  readOptimizer(members, config.optimizer);
  members.read("gradient_clipping", config.gradientClipping);
  readSchedule(members, config.optimizer, config.schedule);
  members.read("fp16.enabled", config.isFp16);
  members.read("bf16.enabled", config.isBf16);
  if (config.isFp16)
    readLossScale(members, config.lossScale);
  members.read("activation_checkpointing.enabled", config.recomputes);
  members.read("progressive_layer_drop.enabled", config.dropsLayers);
  if (config.dropsLayers)
    readLayerDrop(members, config.layerDrop);
  readQuantization(members, config.quantization);
  members.read("steps_per_print", config.stepsPerPrint);
  members.read("wall_clock_breakdown", config.wallClockBreakdown);
  members.read("memory_breakdown", config.memoryBreakdown);
  members.read("dump_state", config.dumpsState);
  members.read("tensorboard.enabled", config.tensorboard.isEnabled);
  members.read("tensorboard.output_path", config.tensorboard.outputPath);
  members.read("tensorboard.job_name", config.tensorboard.jobName);
  members.read("flops_profiler.enabled", config.flopsProfiler.isEnabled);
  members.read("flops_profiler.profile_step", config.flopsProfiler.step);
  members.read("flops_profiler.module_depth", config.flopsProfiler.depth);
  members.read("flops_profiler.top_modules", config.flopsProfiler.top);
  members.read("flops_profiler.detailed", config.flopsProfiler.isDetailed);
  members.read("flops_profiler.output_file", config.flopsProfiler.outputFile);
  assignRanks(config);
}

} // namespace ds::config
