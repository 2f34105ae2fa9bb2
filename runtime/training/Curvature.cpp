#include "runtime/training/Curvature.h"

#include <algorithm>
#include <cmath>

namespace ds {

std::vector<double> layerEigenvalues(Trainer &trainer, const std::vector<TensorView> &views,
                                     const EigenvalueSettings &settings, double weight, uint64_t seed) {
  std::vector<double> result;
  for (int64_t layer = 0; layer < settings.layers; ++layer) {
    trainer.drawDirections(seed);
    double before = 0, now = 1;
    for (int64_t i = 0;
         i < settings.maxIterations && now != 0 && std::abs(now - before) >= settings.tolerance * std::abs(now); ++i) {
      before = now;
      now = trainer.curvature(views, layer, weight);
      now = std::isfinite(now) ? now : 0;
    }
    result.push_back(now / weight);
  }
  return result;
}

std::vector<int64_t> periodFactors(const std::vector<double> &eigenvalues, size_t blocks) {
  double greatest = 0;
  for (double value : eigenvalues)
    greatest = std::max(greatest, std::abs(value));
  std::vector<int64_t> factors(blocks, 1);
  for (size_t i = 0; i < std::min(blocks, eigenvalues.size()); ++i) {
    double share = eigenvalues[i] == 0 ? 1 : std::abs(eigenvalues[i]) / greatest;
    factors[i] = 1 + static_cast<int64_t>(std::floor(4 * share));
  }
  return factors;
}

} // namespace ds
