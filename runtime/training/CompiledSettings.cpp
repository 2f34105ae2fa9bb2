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
  LayerDropSettings &drop = result.layerDrop;
  drop.theta = std::clamp(number(valueOf(config, "progressive_layer_drop.theta"), drop.theta), 0.0, 1.0);
  drop.gamma = std::max(number(valueOf(config, "progressive_layer_drop.gamma"), drop.gamma), 0.0);
  drop.isPaper = valueOf(config, "progressive_layer_drop.depth_schedule") == "paper";
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
