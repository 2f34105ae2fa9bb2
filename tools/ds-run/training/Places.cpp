#include "tools/ds-run/training/Places.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/training/MemoryUse.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace ds {

std::optional<uint64_t> parseBytes(const std::string &text) {
  size_t digits = text.find_first_not_of("0123456789");
  std::string number = text.substr(0, digits), unit = digits == std::string::npos ? "" : text.substr(digits);
  unsigned shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : unit == "TiB" ? 40 : 0;
  errno = 0;
  uint64_t value = number.empty() ? 0 : std::strtoull(number.c_str(), nullptr, 10);
  bool fits = errno == 0 && value <= (UINT64_MAX >> 1) >> shift;
  return value == 0 || !fits || (shift == 0 && !unit.empty()) ? std::nullopt : std::optional(value << shift);
}

StatePlaces placesOf(const config::TrainingConfig &config, const TrainOptions &options) {
  StatePlaces places = placesOf(config);
  if (!options.deviceMemory.empty())
    places.deviceBytes = parseBytes(options.deviceMemory).value_or(0);
  return places;
}

void takePlaces(Trainer &trainer, const Dataset &data, const config::TrainingConfig &config,
                const TrainOptions &options, const RunRanks &group) {
  const config::ZeroSettings &zero = config.zero;
  for (auto [key, offload] :
       {std::pair("offload_optimizer", &zero.optimizerPlace), std::pair("offload_param", &zero.parameterPlace)})
    if (offload->device == "cpu" && options.deviceMemory.empty() && group.isFirst())
      std::fprintf(stderr,
                   "ds-run: note: zero_optimization.%s.device = cpu: there is nothing to move, the device's memory is "
                   "the host's; --device-memory=SIZE counts them apart\n",
                   key);
  bool areFiles = zero.optimizerPlace.device == "nvme" || zero.parameterPlace.device == "nvme";
  if (options.deviceMemory.empty() && !areFiles)
    return;
  trainer.touchStates();
  trainer.session().withStates([&](StateStore &states) {
    if (!states.uncut().empty() && group.isFirst())
      std::fprintf(
          stderr,
          "ds-run: note: zero_optimization.sub_group_size = %lld: '%s'%s in memory as a whole, since something "
          "other than the update works on all of it\n",
          static_cast<long long>(zero.subGroup), states.uncut().begin()->c_str(),
          states.uncut().size() == 1 ? " is" : concat(" and ", states.uncut().size() - 1, " more are").c_str());
  });
  if (std::optional<MemoryPlan> plan = planOf(trainer, data, config))
    trainer.session().withStates([&](StateStore &states) {
      states.requireDevice("workspace of a micro-batch and its activations", plan->activations + plan->workspace);
    });
}

} // namespace ds
