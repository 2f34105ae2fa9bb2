#include "runtime/training/CompiledSettings.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ds {
namespace {

using nlohmann::json;

// The value of a key of ds_config.json; null without.
json valueOf(const json &config, const std::string &key) {
  auto keys = config.is_object() ? config.find("keys") : config.end();
  if (keys != config.end() && keys->is_array())
    for (const json &item : *keys)
      if (item.is_object() && item.value("key", json()) == key)
        return item.value("value", json());
  return nullptr;
}

double number(const json &value, double fallback) {
  return value.is_number() && std::isfinite(value.get<double>()) ? value.get<double>() : fallback;
}

int64_t atLeastOne(const json &value, int64_t fallback) {
  return value.is_number_integer() ? std::max<int64_t>(value.get<int64_t>(), 1) : fallback;
}

QuantizationSettings quantization(const json &config) {
  const std::string section = "quantize_training.";
  auto of = [&](const char *key) { return valueOf(config, section + key); };
  auto within = [&](const char *key, int64_t least, int64_t most, int64_t fallback) {
    json value = of(key);
    return value.is_number_integer() ? std::clamp(value.get<int64_t>(), least, most) : fallback;
  };
  constexpr int64_t most = 2147483647, widest = 24;
  QuantizationSettings result;
  result.isEnabled = of("enabled") == true;
  result.groups = within("quantize_groups", 1, most, result.groups);
  result.startBits = within("quantize_bits.start_bits", 1, widest, result.startBits);
  result.targetBits = within("quantize_bits.target_bits", 1, result.startBits, result.targetBits);
  result.period = within("quantize_schedule.quantize_period", 1, most, result.period);
  result.offset = within("quantize_schedule.schedule_offset", 0, most, result.offset);
  result.isSymmetric = of("quantize_algo.q_type") != "asymmetric";
  result.isStochastic = of("quantize_algo.rounding") == "stochastic";
  result.eigenvalue.isEnabled = of("eigenvalue.enabled") == true;
  result.isMixed = of("fp16_mixed_quantize.enabled") == true;
  double ratio = number(of("fp16_mixed_quantize.quantize_change_ratio"), result.changeRatio);
  result.changeRatio = ratio > 0 ? std::min(ratio, 1.0) : result.changeRatio;
  return result;
}

} // namespace

CompiledSettings compiledSettings(const Manifest &manifest) {
  CompiledSettings result;
  if (!manifest.training)
    return result;
  json config = json::parse(manifest.training->config, nullptr, /*allow_exceptions=*/false);
  result.lr = number(valueOf(config, "optimizer.params.lr"), result.lr);
  result.momentum = number(valueOf(config, "optimizer.params.momentum"), result.momentum);
  if (json betas = valueOf(config, "optimizer.params.betas"); betas.is_array() && !betas.empty())
    result.momentum = number(betas[0], result.momentum);
  result.freezeStep = atLeastOne(valueOf(config, "optimizer.params.freeze_step"), result.freezeStep);
  LayerDropSettings &drop = result.layerDrop;
  drop.theta = std::clamp(number(valueOf(config, "progressive_layer_drop.theta"), drop.theta), 0.0, 1.0);
  drop.gamma = std::max(number(valueOf(config, "progressive_layer_drop.gamma"), drop.gamma), 0.0);
  drop.isPaper = valueOf(config, "progressive_layer_drop.depth_schedule") == "paper";
  result.quantization = quantization(config);
  if (valueOf(config, "fp16.enabled") != true)
    return result;
  LossScaleSettings &scale = result.lossScale;
  scale.constant = std::max(number(valueOf(config, "fp16.loss_scale"), 0), 0.0);
  double power = std::clamp(number(valueOf(config, "fp16.initial_scale_power"), 16), 0.0, 126.0);
  scale.initial = std::ldexp(1.0, static_cast<int>(power));
  scale.window = atLeastOne(valueOf(config, "fp16.loss_scale_window"), scale.window);
  scale.hysteresis = atLeastOne(valueOf(config, "fp16.hysteresis"), scale.hysteresis);
  scale.minimum = number(valueOf(config, "fp16.min_loss_scale"), scale.minimum);
  scale.isConsecutive = valueOf(config, "fp16.consecutive_hysteresis") == true;
  return result;
}

} // namespace ds
