// ds-run lr-range: steps with a rate that grows from one to another; where the loss falls fastest is a rate to begin
// with (Smith 2017, "Cyclical learning rates for training neural networks", section 3.3).
#include "runtime/core/Error.h"
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
    double slope =
        (points[i + 1].smooth - points[i - 1].smooth) / (std::log(points[i + 1].lr) - std::log(points[i - 1].lr));
    if (slope < steepest) {
      steepest = slope;
      best = i;
    }
  }
  return steepest < 0 ? points[best].lr : 0;
}

} // namespace

int lrRangeCommand(const TrainOptions &options) {
  if (!(options.leastRate < options.mostRate))
    fail(ErrorCode::InvalidArgument, "--max-lr: found ", options.mostRate, ", expected more than --min-lr, ",
         options.leastRate);
  auto package = loadPackage(options.run.package, options.run);
  config::TrainingConfig config = configOf(*package, options);
  Trainer trainer(package, sessionOf(options));
  auto data = openData(trainer, options.data, options);
  BatchReader reader(data, Sampler(data->samples(), options.seed.value_or(0), options.shuffle == "on"),
                     config.microBatch, LastBatch::Smaller);
  TrainingRun run(trainer, runSettings(config), reader);
  int64_t steps = std::max<int64_t>(options.steps.value_or(100), 2);
  std::vector<RangePoint> points;
  double average = 0, weight = 0, least = 0;
  for (int64_t step = 0; step < steps; ++step) {
    double share = static_cast<double>(step) / static_cast<double>(steps - 1);
    double lr = options.leastRate * std::pow(options.mostRate / options.leastRate, share);
    std::optional<StepRecord> record = run.step({lr, config.schedule.momentum});
    if (!record)
      break;
    if (record->isHopeless || !std::isfinite(record->loss)) { // the rate is too large, or what was read is no number
      std::string fault = run.findFault([&](const std::string &node) { return operatorOf(*package, node); });
      std::fprintf(stderr, "ds-run: warning: %s; the range ends here\n", fault.c_str());
      break;
    }
    if (record->overflowed)
      continue;
    average = 0.8 * average + 0.2 * record->loss;
    weight = 0.8 * weight + 0.2;
    double smooth = average / weight;
    points.push_back({lr, record->loss, smooth});
    least = points.size() == 1 ? smooth : std::min(least, smooth);
    if (smooth > least + 3 * std::max(std::abs(least), 0.1))
      break; // diverged
  }
  if (points.size() < 3)
    fail(ErrorCode::Execution, "fewer than 3 steps had a finite loss; a smaller --min-lr may help");
  double rate = suggestRate(points);
  if (!options.run.html.empty()) {
    Line raw{"loss", "#9ab8e0", {}}, smooth{"smoothed", "#1f5fae", {}};
    for (const RangePoint &point : points) {
      raw.points.emplace_back(point.lr, point.loss);
      smooth.points.emplace_back(point.lr, point.smooth);
    }
    writePage(
        options.run.html, "learning rates of " + options.run.package,
        lineChart({"loss by learning rate", "learning rate", true}, {raw, smooth}) +
            (rate > 0 ? concat("<p>suggested: ", rate, "</p>\n") : std::string("<p>the loss fell nowhere</p>\n")));
  }
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

} // namespace ds
