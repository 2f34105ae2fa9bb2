#include "tools/ds-run/training/TrainPage.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/training/Chart.h"

#include <algorithm>

namespace ds {

void writeTrainPage(const std::string &path, const std::string &package, const History &history) {
  Line loss{"loss", "#9ab8e0", {}}, smooth{"smoothed", "#1f5fae", {}}, held{"evaluation", "#c0392b", {}};
  Line accuracy{"accuracy", "#c0392b", {}}, rate{"lr", "#1f5fae", {}}, norm{"norm", "#1f5fae", {}},
      scale{"scale", "#1f5fae", {}}, theta{"theta", "#c0392b", {}}, blocks{"blocks that ran", "#1f5fae", {}},
      fewest{"fewest", "#1f5fae", {}}, most{"most", "#9ab8e0", {}};
  double average = 0, weight = 0; // exponential, without the bias of its start
  bool hasScale = false;
  for (const StepRecord &step : history.steps) {
    auto x = static_cast<double>(step.step);
    loss.points.emplace_back(x, step.loss);
    if (!step.overflowed) {
      average = 0.95 * average + 0.05 * step.loss;
      weight = 0.95 * weight + 0.05;
      smooth.points.emplace_back(x, average / weight);
    }
    rate.points.emplace_back(x, step.lr);
    norm.points.emplace_back(x, step.gradNorm);
    scale.points.emplace_back(x, step.lossScale);
    hasScale |= step.lossScale != 1;
    if (step.theta) {
      theta.points.emplace_back(x, *step.theta);
      blocks.points.emplace_back(x, static_cast<double>(step.blocks));
    }
    if (!step.bits.empty()) {
      auto [least, greatest] = std::minmax_element(step.bits.begin(), step.bits.end());
      fewest.points.emplace_back(x, static_cast<double>(*least));
      most.points.emplace_back(x, static_cast<double>(*greatest));
    }
  }
  for (const auto &[step, score] : history.scores) {
    held.points.emplace_back(static_cast<double>(step), score.loss);
    if (score.accuracy)
      accuracy.points.emplace_back(static_cast<double>(step), *score.accuracy);
  }
  std::string body = lineChart({"loss", "step"}, held.points.empty() ? std::vector<Line>{loss, smooth}
                                                                     : std::vector<Line>{loss, smooth, held});
  if (!accuracy.points.empty())
    body += lineChart({"accuracy in evaluation", "step"}, {accuracy});
  body += lineChart({"learning rate", "step"}, {rate}) + lineChart({"gradient norm, before clipping", "step"}, {norm});
  if (hasScale)
    body += lineChart({"loss scale", "step", false, true}, {scale});
  if (!theta.points.empty())
    body += lineChart({"theta of layer dropping", "step"}, {theta}) +
            lineChart({"blocks that ran in a step", "step"}, {blocks});
  if (!fewest.points.empty())
    body += lineChart({"bits of quantized weights", "step"}, {most, fewest});
  if (int64_t drawn = history.steps.empty() ? history.first : history.steps.front().step; drawn > 0)
    body += concat("<p>The run was resumed: steps before ", drawn,
                   " are not drawn, as --log named no file that has them.</p>\n");
  if (!history.steps.empty()) {
    const StepRecord &last = history.steps.back();
    body += concat("<table><tr><td>steps</td><td>", last.step + 1, "</td></tr><tr><td>samples</td><td>", last.samples,
                   "</td></tr><tr><td>skipped</td><td>", last.skipped, "</td></tr><tr><td>last loss</td><td>",
                   last.loss, "</td></tr></table>\n");
  }
  writePage(path, "training of " + package, body);
}

} // namespace ds
