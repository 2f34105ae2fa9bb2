// ds-run eval and ds-run schedule.
#include "runtime/core/Error.h"
#include "tools/ds-run/training/Setup.h"
#include "tools/ds-run/training/Widths.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace ds {

static int evaluateOn(const RunRanks &group, const TrainOptions &options) {
  auto package = loadPackage(options.run.package, options.run, group.rank(), group.world());
  config::TrainingConfig config = configOf(*package, options, group);
  Trainer trainer(package, sessionOf(options, group));
  auto data = openData(trainer, options.data, options);
  if (!options.checkpoint.empty()) {
    Checkpoint checkpoint(options.checkpoint, options.tag);
    trainer.restoreParameters(checkpoint);
  } else if (!options.tag.empty()) {
    fail(ErrorCode::InvalidArgument, "--tag is about checkpoints, found no --checkpoint=DIR");
  }
  if (group.world() > 1)
    requireAgreement(group.ranks(), factsOf(*package, config, options, *data));
  Score score = evaluate(trainer, data, config.microBatch, group.ranks());
  if (!group.isFirst())
    return 0;
  if (options.run.asJson) {
    nlohmann::ordered_json result = {
        {"eval_loss", std::isfinite(score.loss) ? nlohmann::ordered_json(score.loss) : nullptr},
        {"accuracy", score.accuracy ? nlohmann::ordered_json(*score.accuracy) : nullptr},
        {"samples", score.samples}};
    std::printf("%s\n", result.dump().c_str());
    return 0;
  }
  if (score.accuracy && score.counted == 0 && std::isnan(score.loss)) {
    std::printf("no label of %lld samples counts: all are ignored\n", static_cast<long long>(score.samples));
    return 0;
  }
  std::printf("loss %.6g", score.loss);
  if (score.accuracy)
    std::printf(", accuracy %.6g of %lld labels", *score.accuracy, static_cast<long long>(score.counted));
  std::printf(", %lld samples\n", static_cast<long long>(score.samples));
  return 0;
}

int evalCommand(const TrainOptions &options) {
  RunRanks group = RunRanks::join();
  return group.run([&] { return evaluateOn(group, options); });
}

int scheduleCommand(const TrainOptions &options) {
  auto package = loadPackage(options.run.package, options.run);
  config::TrainingConfig config = configOf(*package, options, RunRanks());
  Schedule schedule(config.schedule);
  LayerDrop layerDrop(config.layerDrop, package->manifest().training->layers.size());
  bool hasMomentum = config.optimizer.hasMomentum();
  int64_t steps = options.steps.value_or(100);
  BitSchedule widths(config.quantization, 1);
  bool quantizes = config.quantization.isEnabled;
  for (int64_t step = 0; step < steps; ++step) {
    Rates rates = schedule.at(step);
    widths.advance();
    std::vector<int64_t> bits = quantizes ? bitsOf(widths) : std::vector<int64_t>();
    if (options.run.asJson) {
      nlohmann::ordered_json row = {
          {"step", step},
          {"lr", rates.lr},
          {"momentum", hasMomentum ? nlohmann::ordered_json(rates.momentum) : nullptr},
          {"theta", layerDrop.blocks() ? nlohmann::ordered_json(layerDrop.theta(step)) : nullptr},
          {"bits", bitsJson(bits)}};
      std::printf("%s%s", step ? ",\n " : "[", row.dump().c_str());
      continue;
    }
    std::printf("%8lld  lr %-12.6g momentum %s%s%s\n", static_cast<long long>(step), rates.lr,
                hasMomentum ? concat(rates.momentum).c_str() : "none",
                (layerDrop.blocks() ? concat("  theta ", layerDrop.theta(step)) : std::string()).c_str(),
                quantizes ? concat("  weights ", bits.empty() ? "" : "in ", bitsText(bits)).c_str() : "");
  }
  if (options.run.asJson)
    std::printf("]\n");
  if (!quantizes)
    return 0;
  BitSchedule all(config.quantization, 1);
  if (options.steps)
    checkTargetIsReached(config.quantization, all, 0, steps);
  else
    std::fprintf(stderr, "ds-run: note: quantize_training reaches its target with %lld steps\n",
                 static_cast<long long>(all.updatesToTarget()));
  return 0;
}

} // namespace ds
