// What ds_config.json says about ranks: how states are shared, how messages are sent, and what contradicts it.
#include "frontends/config/Values.h"

#include <algorithm>
#include <cmath>

namespace ds::config {
using nlohmann::json;

namespace {
const std::string zero = "zero_optimization.", gradientKey = "data_types.grad_accum_dtype";

// The file's value, or the table's default: keys of ranks are entries only where the file has them.
json valueOf(const TrainingConfig &config, const std::string &key) {
  const Entry *entry = config.find(key);
  json value = entry ? json::parse(entry->value, nullptr, /*allow_exceptions=*/false) : json();
  const KeySpec *spec = findKey(key);
  return value.is_null() && spec && !spec->fallback.empty() ? json::parse(spec->fallback) : value;
}

// Of elements: a number beyond all models means all of them.
int64_t elements(const TrainingConfig &config, const std::string &key) {
  constexpr double most = 9007199254740992.0; // 2^53: doubles tell neighbours apart up to there
  json value = valueOf(config, key);
  return value.is_number() ? static_cast<int64_t>(std::clamp(value.get<double>(), 0.0, most)) : 0;
}

std::string text(const json &value) { return value.is_string() ? value.get<std::string>() : ""; }

// With the older key that is true or false.
OffloadSettings placeOf(const TrainingConfig &config, const std::string &section, const std::string &older) {
  OffloadSettings place;
  bool isGiven = std::any_of(config.entries.begin(), config.entries.end(), [&](const Entry &entry) {
    return entry.key.rfind(zero + section, 0) == 0 && entry.source == Source::File;
  });
  if (isGiven)
    place.device = text(valueOf(config, zero + section + ".device"));
  else if (valueOf(config, zero + older) == json(true))
    place.device = "cpu";
  place.folder = text(valueOf(config, zero + section + ".nvme_path"));
  place.buffers = elements(config, zero + section + ".buffer_count");
  if (findKey(zero + section + ".max_in_cpu"))
    place.inHost = elements(config, zero + section + ".max_in_cpu");
  return place;
}

class TogetherOnRanks {
public:
  TogetherOnRanks(TrainingConfig &config, const GivenKeys &given, Problems &problems)
      : config(config), given(given), problems(problems) {}

  void run() {
    for (const KeySpec &key : keys())
      if (key.use == KeyUse::Fixed)
        fixed(key);
    idleStageThree();
    compression();
    travellingType();
    predivision();
    place("offload_optimizer", config.zero.optimizerPlace);
    place("offload_param", config.zero.parameterPlace);
    subGroup();
    if (config.zero.parameterPlace.device != "none" && config.zero.stage != 3)
      problems.add(given.placeOf(zero + "offload_param.device"), zero, "offload_param.device: found ",
                   config.zero.parameterPlace.device, " at stage ", std::to_string(config.zero.stage),
                   ", expected none, or stage 3: below it parameters are whole where they are used");
  }

private:
  bool isChosen(const std::string &path) const {
    const Given *found = given.find(path);
    return found && !found->value.is_null() && found->value != json::parse(findKey(path)->fallback);
  }

  Entry &entryOf(const std::string &path) {
    return *std::find_if(config.entries.begin(), config.entries.end(),
                         [&](const Entry &entry) { return entry.key == path; });
  }

  void note(const std::string &path, const std::string &text) {
    Entry &entry = entryOf(path);
    entry.note = text;
    entry.isUsed = false;
  }

  // Other values of these would be another design; where nothing is shared they ask for nothing.
  void fixed(const KeySpec &key) {
    std::string path(key.path);
    if (!isChosen(path))
      return;
    if (path.rfind(zero, 0) == 0 && config.zero.stage == 0)
      return note(path, "without effect at stage 0");
    problems.add(given.placeOf(path), path, ": found ", shown(given.find(path)->value), ", expected ",
                 std::string(key.fallback), ": ", std::string(key.effect));
  }

  void idleStageThree() {
    if (config.zero.stage == 3)
      return;
    for (Entry &entry : config.entries)
      if (const KeySpec *key = findKey(entry.key);
          key && key->use == KeyUse::Ranks && entry.key.rfind(zero + "stage3_", 0) == 0) {
        entry.note = "without effect below stage 3";
        entry.isUsed = false;
      }
  }

  void compression() {
    bool isCompressed = given.optimizer == "OneBitAdam" || given.optimizer == "OneBitLamb";
    if (isCompressed && config.zero.stage >= 2)
      problems.add(given.placeOf(zero + "stage"), zero, "stage: found ", std::to_string(config.zero.stage),
                   " with optimizer.type ", given.optimizer, ", expected 0 or 1: momentum is compressed as a whole, ",
                   "gradients of a part of it are not enough");
    if (isCompressed && config.schedule.kind == ScheduleKind::OneCycle && config.schedule.cyclesMomentum)
      problems.add(given.placeOf("scheduler.params.cycle_momentum"),
                   "scheduler.params.cycle_momentum: found true with ", "optimizer.type ", given.optimizer,
                   ", expected false: what was left out of messages was momentum of ", "another decay");
    if (isCompressed && valueOf(config, "sparse_gradients") == json(true))
      problems.add(given.placeOf("sparse_gradients"), "sparse_gradients: found true with optimizer.type ",
                   given.optimizer, ", expected false: momentum is not sparse");
    if (given.optimizer == "OneBitLamb" && config.optimizer.factorMin > config.optimizer.factorMax)
      problems.add(given.placeOf("optimizer.params.factor_min"), "optimizer.params.factor_min: found ",
                   std::to_string(config.optimizer.factorMin), ", expected at most factor_max ",
                   std::to_string(config.optimizer.factorMax));
  }

  void travellingType() {
    std::string asked = text(valueOf(config, "communication_data_type"));
    if (isChosen("fp32_allreduce") && !asked.empty() && asked != "fp32")
      problems.add(given.placeOf("communication_data_type"), "communication_data_type: found ", asked,
                   " with fp32_allreduce true, expected one of them");
    const std::string &kept = config.zero.gradientType, &travels = config.zero.wireType;
    bool isHalf = kept == "fp16" || kept == "bf16";
    if (isHalf && (travels == "fp16" || travels == "bf16") && travels != kept)
      problems.add(given.placeOf("communication_data_type"), "communication_data_type: found ", travels, " with ",
                   gradientKey, " ", kept, ", expected ", kept, ", fp32 or null");
    for (const char *key : {"communication_data_type", "fp32_allreduce"})
      if (isHalf && travels == "fp32" && isChosen(key))
        note(key, "without effect: gradients are kept in " + kept);
    if (isHalf && config.oneBit.isEnabled)
      problems.add(given.placeOf(gradientKey), gradientKey, ": found ", kept, " with optimizer.type ", given.optimizer,
                   ", expected fp32: what messages of 1 bit leave out is remembered in fp32");
  }

  void subGroup() {
    if (isChosen(zero + "sub_group_size") && config.zero.optimizerPlace.device != "nvme")
      note(zero + "sub_group_size", "without effect: an update works in place, and no states of the optimizer are in "
                                    "files");
  }

  void place(const std::string &section, const OffloadSettings &settings) {
    std::string path = zero + section;
    if (settings.device == "nvme" && settings.folder.empty())
      problems.add(given.placeOf(path + ".device"), path, ".nvme_path: missing, expected a folder, for device nvme");
    if (const Given *found = given.find(path); found && found->value.empty()) {
      entryOf(path).note = "device cpu";
      entryOf(path).isUsed = true;
    }
    if (settings.device != "nvme" && isChosen(path + ".nvme_path"))
      note(path + ".nvme_path", "without effect: the device is " + settings.device);
    if (settings.device != "nvme" && isChosen(path + ".buffer_count"))
      note(path + ".buffer_count", "without effect: the device is " + settings.device);
  }

  void predivision() {
    const std::string factor = "gradient_predivide_factor";
    if (!isChosen(factor))
      return;
    if (given.find("prescale_gradients") && given.find("prescale_gradients")->value == json(true))
      problems.add(given.placeOf(factor), factor, ": found ", shown(given.find(factor)->value),
                   " with prescale_gradients true, which divides by all ranks before, expected one of them");
  }

  TrainingConfig &config;
  const GivenKeys &given;
  Problems &problems;
};
} // namespace

void assignRanks(TrainingConfig &config) {
  ZeroSettings &to = config.zero;
  to.stage = elements(config, zero + "stage");
  to.reduceBucket = elements(config, zero + "reduce_bucket_size");
  to.gatherBucket = elements(config, zero + "allgather_bucket_size");
  json overlaps = valueOf(config, zero + "overlap_comm");
  to.overlaps = !overlaps.is_boolean() || overlaps.get<bool>(); // DeepSpeed: at stage 3 alone
  to.wireType =
      valueOf(config, "fp32_allreduce") == json(true) ? "fp32" : text(valueOf(config, "communication_data_type"));
  to.gradientType = text(valueOf(config, gradientKey));
  to.subGroup = elements(config, zero + "sub_group_size");
  to.maxLive = elements(config, zero + "stage3_max_live_parameters");
  const std::string reuse = zero + "stage3_max_reuse_distance";
  const Entry *given = config.find(reuse);
  // DeepSpeed's default would keep most models whole.
  to.maxReuse = given && given->source == Source::File ? elements(config, reuse) : 0;
  to.prefetchBucket = elements(config, zero + "stage3_prefetch_bucket_size");
  to.persistence = elements(config, zero + "stage3_param_persistence_threshold");
  to.modelPersistence = elements(config, zero + "stage3_model_persistence_threshold");
  to.hasSparseGradients = valueOf(config, "sparse_gradients") == json(true);
  to.optimizerPlace = placeOf(config, "offload_optimizer", "cpu_offload");
  to.parameterPlace = placeOf(config, "offload_param", "cpu_offload_params");
  config.predivide = valueOf(config, "gradient_predivide_factor").get<double>();
  config.tagValidation = text(valueOf(config, "checkpoint.tag_validation"));
  OneBitSettings &bit = config.oneBit;
  std::string type = text(valueOf(config, "optimizer.type"));
  bit.isEnabled = type == "OneBitAdam" || type == "OneBitLamb";
  bit.freezeStep = elements(config, "optimizer.params.freeze_step");
}

void checkRanksTogether(TrainingConfig &config, const GivenKeys &given, Problems &problems) {
  TogetherOnRanks(config, given, problems).run();
}

} // namespace ds::config
