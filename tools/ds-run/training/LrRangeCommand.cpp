// ds-run lr-range: steps with a rate that grows from one to another, or as the configured range test says, from the
// package's first states or copies of a checkpoint's; where the loss falls fastest is a rate to begin with (Smith 2017,
// "Cyclical learning rates for training neural networks", section 3.3). Nothing is saved.
#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "tools/ds-run/Messages.h"
#include "tools/ds-run/training/Chart.h"
#include "tools/ds-run/training/ExportOnnx.h"
#include "tools/ds-run/training/Setup.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace ds {
namespace {

struct RangePoint {
  double lr, loss, smooth;
};

// Of where the smoothed loss falls most per power of ten, before it is least.
double suggestRate(const std::vector<RangePoint> &points) {
  size_t least = 0;
  for (size_t i = 0; i < points.size(); ++i)
    if (points[i].smooth < points[least].smooth)
      least = i;
  size_t best = 0;
  double steepest = 0;
  for (size_t i = 1; i + 1 < points.size() && i <= least; ++i) {
    if (!(points[i + 1].lr > points[i - 1].lr)) // on a stair
      continue;
    double slope =
        (points[i + 1].smooth - points[i - 1].smooth) / (std::log(points[i + 1].lr) - std::log(points[i - 1].lr));
    if (slope < steepest) {
      steepest = slope;
      best = i;
    }
  }
  return steepest < 0 ? points[best].lr : 0;
}

// The rate of each step: between two rates by one factor, or a scheduler's.
class RangeRates {
public:
  RangeRates(const TrainOptions &options, const config::TrainingConfig &config, int64_t steps)
      : schedule(config.schedule), momentum(config.schedule.momentum), steps(steps) {
    isScheduled = config.schedule.kind == ScheduleKind::LRRangeTest && !options.leastRate && !options.mostRate;
    least = options.leastRate.value_or(1e-7);
    most = options.mostRate.value_or(1);
    if (!isScheduled && !(least < most))
      fail(ErrorCode::InvalidArgument, "--max-lr: found ", most, ", expected more than --min-lr, ", least);
  }

  Rates at(int64_t step) const {
    if (isScheduled)
      return {schedule.at(step).lr, momentum};
    double share = static_cast<double>(step) / static_cast<double>(steps - 1);
    return {least * std::pow(most / least, share), momentum};
  }

private:
  Schedule schedule;
  double momentum, least = 0, most = 0;
  int64_t steps;
  bool isScheduled = false;
};

// Loss by rate, and a line where the suggestion is.
void writeRangePage(const TrainOptions &options, const std::vector<RangePoint> &points, double rate) {
  Line raw{"loss", "#9ab8e0", {}}, smooth{"smoothed", "#1f5fae", {}}, suggested{"suggested", "#b3541e", {}};
  double low = points.front().loss, high = low;
  for (const RangePoint &point : points) {
    raw.points.emplace_back(point.lr, point.loss);
    smooth.points.emplace_back(point.lr, point.smooth);
    low = std::min({low, point.loss, point.smooth});
    high = std::max({high, point.loss, point.smooth});
  }
  std::vector<Line> lines = {raw, smooth};
  if (rate > 0) {
    suggested.points = {{rate, low}, {rate, high}};
    lines.push_back(suggested);
  }
  bool isLog = points.front().lr > 0;
  writePage(options.run.html, "learning rates of " + options.run.package,
            lineChart({"loss by learning rate", "learning rate", isLog}, lines) +
                (rate > 0 ? concat("<p>suggested: ", rate, "</p>\n") : std::string("<p>the loss fell nowhere</p>\n")));
}

} // namespace

static int rangeOn(const RunRanks &group, const TrainOptions &options) {
  if (options.checkpoint.empty() && !options.tag.empty())
    fail(ErrorCode::InvalidArgument, "--tag is about checkpoints, found no --checkpoint=DIR");
  constexpr int64_t fewest = 3; // of which a slope in the middle can be told
  int64_t steps = options.steps.value_or(100);
  if (steps < fewest)
    fail(ErrorCode::InvalidArgument, "--steps: found ", steps, ", expected at least ", fewest);
  if (!options.run.html.empty() && group.isFirst())
    AtomicFile page(options.run.html); // now, before anything is computed, throws where it could not be written
  auto package = loadPackage(options.run.package, options.run);
  config::TrainingConfig config = configOf(*package, options, group);
  Trainer trainer(package, sessionOf(options, group));
  auto data = openData(trainer, options.data, options);
  RangeRates rates(options, config, steps);
  std::optional<Checkpoint> checkpoint;
  if (!options.checkpoint.empty())
    checkpoint.emplace(options.checkpoint, options.tag);
  uint64_t seed = options.seed.value_or(checkpoint ? checkpoint->progress().seed : 0);
  BatchReader reader(data, Sampler(data->samples(), seed, options.shuffle == "on"), config.microBatch,
                     LastBatch::Smaller);
  if (group.world() > 1) {
    auto facts = factsOf(*package, config, options, *data);
    facts.emplace_back("seed", std::to_string(seed));
    requireAgreement(group.ranks(), facts);
  }
  TrainingRun run(trainer, runSettings(config), reader, group.ranks());
  if (checkpoint) // into this process' own states
    run.restore(*checkpoint);
  std::vector<RangePoint> points;
  double average = 0, weight = 0, least = 0;
  int64_t overflows = 0;
  for (int64_t step = 0; step < steps; ++step) {
    Rates now = rates.at(step);
    std::optional<StepRecord> record = run.step(now);
    if (!record)
      break;
    if (record->isHopeless || !std::isfinite(record->loss)) { // the rate is too large, or what was read is no number
      std::string fault = run.findFault([&](const std::string &node) { return operatorOf(*package, node); });
      if (group.isFirst())
        printMessage("warning: ", fault, "; the range ends here");
      break;
    }
    if (record->overflowed) {
      ++overflows;
      continue;
    }
    average = 0.8 * average + 0.2 * record->loss;
    weight = 0.8 * weight + 0.2;
    double smooth = average / weight;
    points.push_back({now.lr, record->loss, smooth});
    least = points.size() == 1 ? smooth : std::min(least, smooth);
    if (smooth > least + 3 * std::max(std::abs(least), 0.1))
      break; // diverged
  }
  if (static_cast<int64_t>(points.size()) < fewest)
    fail(ErrorCode::Execution, "found ", points.size(), " steps with finite losses and gradients, expected at least ",
         fewest,
         overflows > 0 ? concat("; ", overflows, " overflowed: more --steps or a smaller initial_scale_power may help")
                       : std::string("; a smaller --min-lr may help"));
  if (!group.isFirst())
    return 0;
  double rate = suggestRate(points);
  if (!options.run.html.empty())
    writeRangePage(options, points, rate);
  if (options.run.asJson) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const RangePoint &point : points)
      list.push_back({{"lr", point.lr}, {"loss", point.loss}, {"smoothed", point.smooth}});
    nlohmann::ordered_json result = {{"suggestion", rate > 0 ? nlohmann::ordered_json(rate) : nullptr},
                                     {"steps", list}};
    std::printf("%s\n", result.dump(1).c_str());
    return 0;
  }
  double low = points.front().smooth, high = low;
  for (const RangePoint &point : points)
    low = std::min(low, point.smooth), high = std::max(high, point.smooth);
  constexpr int columns = 50;
  size_t stride = std::max<size_t>(1, points.size() / 40);
  for (size_t i = 0; i < points.size(); i += stride) {
    int bar = high > low ? static_cast<int>((points[i].smooth - low) / (high - low) * columns) : 0;
    std::printf("%10.3g %10.4g %s*\n", points[i].lr, points[i].smooth,
                std::string(static_cast<size_t>(bar), ' ').c_str());
  }
  if (rate > 0)
    std::printf("suggested learning rate: %.3g\n", rate);
  else
    std::printf("the loss fell nowhere: no rate to suggest\n");
  return 0;
}

int lrRangeCommand(const TrainOptions &options) {
  RunRanks group = RunRanks::join();
  return group.run([&] { return rangeOn(group, options); });
}

} // namespace ds
