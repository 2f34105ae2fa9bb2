#include "runtime/training/FaultFinder.h"

#include <cmath>

namespace ds {

void FaultFinder::afterLaunch(const Event &event) {
  if (!nan.empty())
    return;
  const LaunchInfo &launch = event.entry.launches[event.site];
  for (const LaunchResult &result : launch.results) {
    if (!isFloat(result.type) || !event.buffers[result.buffer])
      continue;
    TensorView view{result.type, evaluateShape(result.shape, event.symbols), event.buffers[result.buffer]};
    if (view.bytes() > event.bufferBytes[result.buffer])
      continue;
    int64_t count = elementCount(view.shape);
    for (int64_t i = 0; i < count; ++i) {
      double value = loadDouble(view.type, view.data, static_cast<size_t>(i));
      if (std::isfinite(value))
        continue;
      std::string &kind = std::isnan(value) ? nan : infinity;
      if (kind.empty())
        kind = concat(std::isnan(value) ? "NaN" : "infinity", " in ",
                      result.value.empty() ? std::string("a tensor") : concat("tensor '", result.value, "'"), " of ",
                      launch.site.empty() ? std::string("the update") : concat("node '", launch.site, "'"), " (kernel ",
                      launch.kernel, ", element ", i, ")");
      if (!nan.empty())
        return;
    }
  }
}

} // namespace ds
